"""What brokers tell of themselves: real ones of earlier releases, and one that wants TLS and a password."""

from pathlib import Path

import pytest

from tests.config.written import loaded
from tests.kit.old_kafka import OldKafka
from tests.kit.secured import SCRAM, SecuredKafka
from tests.kit.secured_sections import secured_sections
from tests.kit.warrens import to_toml
from warren.kafka.broker_versions import BrokerVersions, ask_versions
from warren.kafka.options import to_librdkafka

PLAIN = {"security.protocol": "PLAINTEXT"}
NOBODY = "127.0.0.1:1"
LIST_OFFSETS, METADATA, OFFSET_FETCH = 2, 3, 9


def test_a_broker_that_is_too_old_is_named_with_its_version() -> None:
    """Those of 0.9.0 and 0.10.1 are in `tests/integration/test_old_offsets_topics.py`."""
    with OldKafka(version="0.10.0", memory="256m") as kafka:
        found = ask_versions(PLAIN, [NOBODY, kafka.bootstrap])
        sentence = f"{kafka.bootstrap}: the broker's version of Kafka is 0.10.0, and Warren needs 0.10.2 or later"
        assert found is not None
        assert found.too_old == f"{sentence}: upgrade it"


@pytest.mark.parametrize(
    ("requests", "too_old", "has_transactions", "creates"),
    [
        ({LIST_OFFSETS: 1, METADATA: 2, OFFSET_FETCH: 1}, True, False, (True, True)),
        ({LIST_OFFSETS: 1, METADATA: 2, OFFSET_FETCH: 2}, False, False, (True, True)),
        ({LIST_OFFSETS: 2, METADATA: 4, OFFSET_FETCH: 3}, False, True, (False, True)),
        ({LIST_OFFSETS: 6, METADATA: 11, OFFSET_FETCH: 7}, False, True, (False, False)),
    ],
    ids=["0.10.1", "0.10.2", "0.11.0", "2.8"],
)
def test_what_a_broker_can_do_follows_from_its_versions(
    requests: dict[int, int], too_old: bool, has_transactions: bool, creates: tuple[bool, bool]
) -> None:
    versions = BrokerVersions("kafka:9092", requests)
    assert (versions.too_old is not None, versions.has_transactions) == (too_old, has_transactions)
    assert (versions.creates_topics, versions.creates_offsets_topic) == creates


def test_a_secured_broker_tells_its_versions_to_anybody(tmp_path: Path) -> None:
    with SecuredKafka(tmp_path / "kafka") as kafka:
        config = loaded(tmp_path, to_toml(secured_sections(kafka, {"main": SCRAM})))
        options = to_librdkafka(config.connection_of(config.clusters["main"]))
        assert "SSL" in options["security.protocol"]
        found = ask_versions(options, [kafka.bootstrap_of(SCRAM)])
        assert found is not None
        assert found.has_transactions
        assert not found.creates_offsets_topic
        assert ask_versions({**options, **PLAIN}, [kafka.bootstrap_of(SCRAM)]) is None, "a port that does not fit"
