"""Profiles that do not fit the port, taken up by a reload: what Warren says, and that the right one mends it.

Two clusters to Warren, on one broker: `odd` gets the wrong profiles, `plain` must not notice.
"""

import contextlib
import copy
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.kit.rights import documented_rights
from tests.kit.secured import PLAIN, SCRAM, USERS, SecuredKafka
from tests.kit.secured_sections import secured_sections
from tests.kit.servers import Client
from tests.kit.warrens import DEADLINE_S, Sections, WarrenRun, wait_for
from warren.demo.workload.consuming_groups import Healthy
from warren.demo.workload.producer import Producer
from warren.demo.workload.thread import stop_all
from warren.demo.workload.topics import create_topics

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

TOPIC, GROUP = "orders", "billing"
TRIGGER_S = 2.0
TRIGGERS = 30
"""Within how many triggers Warren must say what is wrong: far fewer, if the machine has nothing else to do."""


@dataclass
class Live:
    """The broker, and the Warren on it with its right configuration."""

    kafka: SecuredKafka
    run: WarrenRun
    sections: Sections

    @property
    def client(self) -> Client:
        """Asks the API of the Warren."""
        return Client(wait_for(lambda: re.findall(r"answering at (\S+)", self.run.log), "the API is there")[-1])

    def cluster(self, name: str) -> dict[str, Any]:
        """A cluster as the overview has it."""
        overview = self.client.json("/v3/overview")["overview"]
        return next(each for each in overview["clusters"] if each["name"] == name)

    def reload(self, sections: Sections) -> None:
        """Go on with another configuration."""
        self.run.configure(sections)
        assert self.client.ask("/v3/admin/reload", "POST", b"").status in (200, 202)

    def wait_well(self) -> None:
        """Wait until both clusters are judged, and of now."""
        began_ms = time.time() * 1000

        def is_well() -> bool:
            found = [self.cluster(name) for name in ("odd", "plain")]
            return all(each.get("unknown_since") is None and (each.get("judged_at") or 0) > began_ms for each in found)

        try:
            wait_for(is_well, "both clusters are judged")
        except AssertionError:
            raise AssertionError(f"{self.cluster('odd')}\n{self.run.log[-4000:]}") from None


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A group that keeps up, so that there are commits to read in every cycle."""
    with SecuredKafka(tmp_path_factory.mktemp("kafka")) as kafka:
        for listener in (SCRAM, PLAIN):
            kafka.grant(USERS[listener], documented_rights("To watch a cluster"))
        create_topics(kafka.bootstrap, {TOPIC: 2})
        workers = [Producer(kafka.bootstrap, TOPIC, 20.0), Healthy(kafka.bootstrap, TOPIC, GROUP)]
        sections = secured_sections(kafka, {"odd": SCRAM, "plain": PLAIN}, trigger=TRIGGER_S)
        run = WarrenRun(tmp_path_factory.mktemp("profiles"), sections)
        with contextlib.ExitStack() as parts:
            parts.callback(stop_all, workers, 60.0)
            for worker in workers:
                worker.start()
            parts.enter_context(run)
            wait_for(run.snapshot, "the first snapshot", 2 * DEADLINE_S)
            yield Live(kafka, run, sections)


OPEN = "the open port"
CASES: dict[str, tuple[str, dict[str, str], str]] = {
    "TLS on a port without it": (OPEN, {"tls": "scram"}, "the broker does not speak TLS on this port"),
    "TLS and SASL on an open port": (
        OPEN, {"tls": "scram", "sasl": "scram"}, "the broker does not speak TLS on this port",
    ),
    "SASL on a port without it": (OPEN, {"sasl": "scram"}, "the broker does not expect SASL on this port"),
    "no TLS on a port with it": (SCRAM, {"sasl": "scram"}, "the broker speaks TLS on this port"),
    "neither on a port with both": (SCRAM, {}, "the broker speaks TLS on this port"),
    "no SASL where the broker asks for it": (SCRAM, {"tls": "scram"}, "the broker closes the connection at once"),
    "another mechanism": (SCRAM, {"tls": "scram", "sasl": "plain"}, "the broker does not offer this SASL mechanism"),
}  # fmt: skip


def with_profile(live: Live, port: str, profile: dict[str, str], *kinds: str) -> Sections:
    """The configuration with a profile, and its port, in the cluster's sections of these kinds."""
    sections = copy.deepcopy(live.sections)
    sections["client-profile.wrong"] = {"client-id": "warren", **profile}
    address = live.kafka.bootstrap if port == OPEN else live.kafka.bootstrap_of(port)
    for kind in kinds:
        sections[f"{kind}.odd"] |= {"client-profile": "wrong", "servers": address.split(",")}
    return sections


@pytest.mark.parametrize("kinds", [("cluster", "consumer"), ("consumer",)], ids=" and ".join)
@pytest.mark.parametrize("case", CASES)
def test_a_profile_that_does_not_fit_is_told_soon_and_the_right_one_mends_it(
    live: Live, case: str, kinds: tuple[str, ...]
) -> None:
    live.wait_well()
    port, profile, sentence = CASES[case]

    def is_told() -> bool:
        return sentence in (live.cluster("odd")["error_message"] or "")

    live.reload(with_profile(live, port, profile, *kinds))
    try:
        wait_for(is_told, sentence, TRIGGERS * TRIGGER_S)
        live.run.wait_for_cycles(3)
        unknown, other = live.cluster("odd"), live.cluster("plain")
    except AssertionError as error:
        raise AssertionError(f"{error}\n{live.cluster('odd')}\n{live.run.log[-4000:]}") from None
    finally:
        live.reload(live.sections)
    assert sentence in unknown["error_message"], "it goes on to say so"
    assert ("[consumer.odd]" in unknown["error_message"]) == ("cluster" not in kinds), "the section that is wrong"
    assert unknown["unknown_since"] is not None
    assert other["unknown_since"] is None
    live.wait_well()
