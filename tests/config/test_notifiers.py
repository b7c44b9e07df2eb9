"""Notifiers of our own classes, routes, and who of several Warrens notifies."""

from pathlib import Path

import pytest

from tests.config.written import SMALLEST, loaded, mistakes
from warren.config import Route, read
from warren.config.notifiers import Incidents, NotifierLock
from warren.config.summary import summary

BOT = '[notifier.bot]\nclass-name = "slack"\ntoken = "xoxb-1"\nchannel = "#lag"\n'
LOCK = '[notifier-lock]\nclass-name = "kafka"\n'


def test_a_notifier_of_our_own_class_needs_no_templates_and_hears_of_ends(tmp_path: Path) -> None:
    config = loaded(tmp_path, SMALLEST + BOT)
    bot = config.notifiers["bot"]
    assert (bot.template_open, bot.wants_close, bot.storm_from) == (None, True, 20)


@pytest.mark.parametrize(
    ("key", "closes", "storms"),
    [('send-close = false\nclass-name = "apprise"', False, 20), ('class-name = "alertmanager"', True, 0)],
)
def test_ends_and_storms_are_as_its_class_and_its_keys_say(tmp_path: Path, key: str, closes: bool, storms: int) -> None:
    config = loaded(tmp_path, f'{SMALLEST}[notifier.n]\nurl-open = "http://x"\n{key}')
    assert (config.notifiers["n"].wants_close, config.notifiers["n"].storm_from) == (closes, storms)


def test_routes_keep_their_order(tmp_path: Path) -> None:
    text = """
[[route]]
group = "payments-*"
team = "payments"
notifiers = ["bot"]
channel = "#payments"
[[route]]
cluster = "prod-?"
notifiers = ["bot"]
continue = true
"""
    assert loaded(tmp_path, SMALLEST + BOT + text).routes == (
        Route("1", ("bot",), "*", "payments-*", "payments", "#payments"),
        Route("2", ("bot",), "prod-?", continue_=True),
    )


def test_routes_may_come_from_yaml(tmp_path: Path) -> None:
    (tmp_path / "burrow.yaml").write_text("""
cluster: {a: {class-name: kafka, servers: ["a:9092"]}}
consumer: {a: {class-name: kafka, cluster: a, servers: ["a:9092"]}}
route:
  - {team: x}
  - {notifiers: [nobody]}
""")
    _, findings = read(tmp_path, {})
    [mistake] = findings.mistakes
    assert mistake.endswith(
        'burrow.yaml:6: [route.2] notifiers = "nobody": '
        "must be a list of names of [notifier.NAME] sections (there is none)"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[[route]]\n[[route]]\nnotifiers = ["bot", "bob"]\n' + BOT,
            '[route.2] notifiers = "bob": must be a list of names of [notifier.NAME] sections (bot)',
        ),
        ('[[route]]\ngroup = ""', '[route.1] group = "": must be a name, in which * stands for any characters and'),
        ('[route]\nteam = "x"', "[route] must be a list of sections, each [[route]]"),
        ("route = [1]\n", "[route.1] must be a section, not 1"),
        (
            BOT.replace('channel = "#lag"', ""),
            "[notifier.bot] channel is missing: a bot needs a channel to post to",
        ),
        (
            BOT + 'url-open = "https://hooks.slack.com/services/T/B/secret"',
            "[notifier.bot] needs either url-open (the URL of a webhook) or token (of a bot)",
        ),
        ('[notifier.a]\nclass-name = "apprise"', "[notifier.a] url-open is missing: a notifier of class apprise needs"),
        ('[notifier.a]\nclass-name = "null"', "[notifier.a] template-open is missing: a notifier of class null needs"),
        (LOCK + 'cluster = "x"', '[notifier-lock] cluster = "x": must be the name of a [cluster.NAME] section (local)'),
    ],
)
def test_a_mistake_in_them_is_reported(tmp_path: Path, text: str, expected: str) -> None:
    # A key without a section must stand first.
    whole = text + SMALLEST if text.startswith("route") else SMALLEST + text
    [mistake] = mistakes(tmp_path, whole)
    assert expected in mistake
    assert "secret" not in mistake


@pytest.mark.parametrize(
    ("text", "rivals", "shared"),
    [
        (BOT, False, False),
        (BOT + LOCK, True, True),
        (BOT + '[zookeeper]\nservers = ["zk:2181"]', True, True),
        (LOCK + '[zookeeper]\nservers = ["zk:2181"]', False, False),
        (BOT + LOCK + '[incidents]\nclass-name = "local"', True, False),
        (BOT + '[incidents]\nclass-name = "kafka"', False, True),
    ],
)
def test_incidents_are_shared_where_several_may_notify(tmp_path: Path, text: str, rivals: bool, shared: bool) -> None:
    config = loaded(tmp_path, SMALLEST + text)
    assert (config.has_leader_election, config.has_replicated_incidents) == (rivals, shared)


def test_the_lock_and_the_place_of_incidents(tmp_path: Path) -> None:
    text = '[incidents]\ntopic = "told"\ncluster = "local"\n' + LOCK + "session-timeout = 20"
    config = loaded(tmp_path, SMALLEST + text)
    assert config.notifier_lock == NotifierLock("kafka", None, "warren-notifier", 20)
    assert config.incidents == Incidents(None, "local", "told")


def test_the_summary_says_who_hears_of_what_and_who_notifies(tmp_path: Path) -> None:
    more = '[notifier.all]\nclass-name = "apprise"\nurl-open = "json://x"\nthreshold = 3\ngroup-denylist = "^test"\n'
    *_, bot, rest, lock, place = summary(
        loaded(tmp_path, SMALLEST + BOT + more + LOCK + '[[route]]\nnotifiers = ["bot"]')
    )
    assert bot == "notifier bot: slack, groups of 1 routes, from WARN on"
    assert rest == "notifier all: apprise, groups but not ^test, from ERR on"
    assert lock == "only one of several Warrens notifies, elected by a lock in Kafka"
    assert place == "incidents are replicated by the topic warren-incidents of local"
