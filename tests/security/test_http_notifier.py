"""Names do not steer the requests of the http notifier, which carry its credentials."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from tests.kit.receivers import Receiver, receiving
from tests.notify.notifications import is_clean, template_findings
from tests.security.names import NAMES, STEPS, about, storm_of
from warren.config import Config, Notifier
from warren.config.secrets import Secret
from warren.errors import RefusedError
from warren.incidents.model import Event, Notification
from warren.notify.senders.http import HttpSender

SHIPPED = Path(__file__).parents[2] / "src/warren/templates/config"
HARMLESS = {name: text for name, text in NAMES.items() if name not in {*STEPS, "very long"}}
TRAVERSAL = NAMES["path traversal"]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def other() -> Iterator[Receiver]:
    """A server that must never get a request."""
    with receiving() as receiver:
        yield receiver
    assert receiver.arrived == 0


def hook(url: str, **changes: Any) -> Notifier:
    template = SHIPPED / "default-http-post.tmpl"
    given = {"url_open": url, "url_close": url, "method_close": "DELETE", "extras": {}, **changes}
    return Notifier("hook", "http", template, template, username="warren", password=Secret("s3cret"), **given)


def send(notifier: Notifier, notification: Notification) -> None:
    sender = HttpSender(notifier)
    try:
        sender.send(notification)
    finally:
        sender.close()


def test_each_name_stays_one_segment_of_the_path_and_one_value_of_the_query(receiver: Receiver) -> None:
    sender = HttpSender(hook(f"{receiver.url}/lag/{{{{.Group}}}}/x?topic={{{{(index .Result.Partitions 0).Topic}}}}"))
    for name in HARMLESS.values():
        sender.send(about(name))
        segment, query = receiver.got[-1].path.removeprefix("/lag/").split("/x?topic=")
        assert (segment, query) == (quote(name, safe=""), quote(name, safe=""))
        assert not set(segment) & set("/?#\\@:;&= "), segment
        assert unquote(segment) == name
        assert receiver.got[-1].json["group"] == name, "in the body it is JSON"
        assert [partition["owner"] for partition in receiver.got[-1].json["details"]] == [name, name]
    assert len(receiver.got) == len(HARMLESS)


@pytest.mark.parametrize("name", [*(NAMES[step] for step in STEPS), ""], ids=repr)
@pytest.mark.parametrize("path", ["/lag/{{.Group}}", "/lag/{{urlquery .Group}}", '/lag{{printf "/%s" .Group}}?x=1'])
def test_a_name_that_leads_to_another_path_is_refused(receiver: Receiver, path: str, name: str) -> None:
    with pytest.raises(
        RefusedError, match=r"a name from Kafka makes the path segment '.*', which leads to another path"
    ):
        send(hook(receiver.url + path), about(name, Event.CLOSE))
    assert receiver.arrived == 0


def test_a_url_that_is_too_long_is_refused(receiver: Receiver) -> None:
    with pytest.raises(RefusedError):
        send(hook(f"{receiver.url}/{{{{.Group}}}}"), about("ü" * 32_000))


@pytest.mark.parametrize(
    "url",
    [
        "{{.Group}}/x",
        "http://{{.Group}}/x",
        "http://{{.Group}}@HOST/x",
        "http://user:{{.Group}}@HOST/x",
        "http://HOST{{.Group}}/x",
        "http://HOST.{{.Group}}/x",
        "{{.Group}}://HOST/x",
        "http:{{.Group}}//HOST/x",
        '{{printf "http://%s" .Group}}/x',
        "http://{{urlquery .Group}}/x",
        "http://{{html .Group}}/x",
        "http://{{js .Group}}/x",
        "http://{{slice .Group 0 4}}/x",
        "{{$g := .Group}}{{with .Result}}http://{{$g}}{{end}}/x",
        'http://{{or .Group "HOST"}}/x',
        '{{define "h"}}{{.}}{{end}}http://{{template "h" .Group}}/x',
        "http://{{(index .Result.Partitions 0).Owner}}/x",
        "http://{{(index .Result.Partitions 0).ClientID}}/x",
        "http://{{range $status, $topics := topicsbystatus .Result.Partitions}}{{index $topics 0}}{{end}}/x",
        'http://{{printf "%c" (index .Group 0)}}/x',
        "http://{{.Start.Format .Group}}/x",
    ],
)
def test_the_server_never_comes_from_a_name(other: Receiver, url: str) -> None:
    host = other.url.removeprefix("http://")
    notifier = hook(url.replace("HOST", host), url_close=None)
    [mistake] = template_findings(Config({}, {}, notifiers={"hook": notifier})).mistakes
    assert "notifier.hook.url_open" in mistake
    assert "must not be in the scheme, user, host or port of a URL" in mistake
    sender = HttpSender(notifier)
    for name in (host, other.url, "x" * 4, f"@{host}"):
        with pytest.raises(RefusedError, match="must not be in the scheme"):
            sender.send(about(name))


def test_a_server_from_a_name_that_no_sample_shows_is_refused_when_it_is_sent(other: Receiver) -> None:
    host = other.url.removeprefix("http://")
    notifier = hook(f'http://{{{{if eq .Group "{host}"}}}}{{{{.Group}}}}{{{{else}}}}{host}{{{{end}}}}/x')
    assert is_clean(template_findings(Config({}, {}, notifiers={"hook": notifier})))
    with pytest.raises(RefusedError, match="must not be in the scheme"):
        send(notifier, about(host))


def test_what_the_operator_wrote_stays_as_written(receiver: Receiver) -> None:
    host = receiver.url.removeprefix("http://")
    extras = {"host": host, "path": "a/b?c=d&e=%20", "base": receiver.url}
    cases = {
        "http://{{.Extras.host}}/{{.Extras.path}}": "/a/b?c=d&e=%20",
        '{{index .Extras "base"}}/{{.Cluster}}/{{.ID}}': "/sample-cluster/00000000-0000-4000-8000-000000000000",
        '{{printf "http://%s/%s/%s" .Extras.host "x/y" .Group}}': f"/x/y/{quote(TRAVERSAL, safe='')}",
        'http://{{.Extras.host}}/{{.Start.Format "2006/01/02"}}/{{.Result.TotalLag}}': "/2026/01/01/46200",
        'http://{{.Extras.host}}/{{if eq .Group "x"}}x{{else}}y/z{{end}}': "/y/z",
        "http://{{.Extras.host}}/../{{.Result.Cluster}}": "/sample-cluster",
    }
    for url, path in cases.items():
        notifier = hook(url, extras=extras)
        assert is_clean(template_findings(Config({}, {}, notifiers={"hook": notifier}))), url
        send(notifier, about(TRAVERSAL))
        assert receiver.got[-1].path == path


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{urlquery .Group}}", "a+b%2Fc%3F"),
        ("{{.Group | urlquery}}", "a+b%2Fc%3F"),
        ('{{printf "%s/%s" .Group "d e" | urlquery}}', "a+b%2Fc%3F%2Fd+e"),
        ('{{printf "[%s]" (urlquery .Group)}}', "[a+b%2Fc%3F]"),
        ("{{.Group}}", "a%20b%2Fc%3F"),
        ('{{printf "%-8s|" .Group}}', "a%20b%2Fc%3F%20%20|"),
        ("{{jsonencoder .Group | urlquery}}", "%22a+b%2Fc%3F%22"),
        ("{{jsonencoder .Group}}", "%22a%20b%2Fc%3F%22"),
        ("{{slice .Group 0 4}}", "a%20b%2F"),
        ("{{len .Group}}", "6"),
    ],
)
def test_functions_encode_once(receiver: Receiver, template: str, expected: str) -> None:
    send(hook(f"{receiver.url}/?q={template}"), about("a b/c?"))
    assert (
        receiver.got[0].path.removeprefix("/?q=").replace("%5B", "[").replace("%5D", "]").replace("%7C", "|")
        == expected
    )


def test_storms_and_long_names_are_sent_too(receiver: Receiver) -> None:
    notifier = hook(f"{receiver.url}/{{{{.Group}}}}")
    send(notifier, storm_of(TRAVERSAL))
    send(notifier, about("x" * 249))
    assert [request.path for request in receiver.got] == ["/37%20groups", f"/{'x' * 249}"]
