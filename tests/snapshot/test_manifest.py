"""The manifest to bytes and back, and what is refused."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.kit.plans import cluster_state
from warren.errors import CorruptSnapshot, UnknownFormat
from warren.snapshot.manifest import FORMAT, Bucket, File, HeadSample, Manifest, Position, Source, from_json
from warren.snapshot.requests import PipelineRequest, RequestKind


def file(name: str) -> File:
    return File(name, 12, "crc32:00000000")


WHOLE = Manifest(
    sequence=7,
    predecessor=6,
    epoch=2,
    now_ms=1_700_000_000_000,
    intervals=10,
    minimum_complete=0.5,
    allowed_lag=3,
    trigger_ms=10_000,
    buckets=(Bucket(file("partitions/a"), file("groups/a"), 5, 2),),
    heads=(HeadSample(file("heads/a"), file("layouts/a"), {"ünïcode": (1, 2)}),),
    clusters={
        "ünïcode": cluster_state(
            unknown_since_ms=5,
            error='no "answer"',
            sources={
                "__consumer_offsets": Source("id", {0: Position(1, 2, 3, 4, 5, 6, (-5, 5)), 11: Position(1, 1, 1)})
            },
            groups_by_status={"OK": 2},
        )
    },
    cycle_ms={"look": 12},
    rejects={"ünïcode": {"the record has no key": 3}},
    requests=(
        PipelineRequest("1", RequestKind.DELETE, 4, "ünïcode", "g"),
        PipelineRequest("2", RequestKind.DELETE, 5, "ünïcode", "g", "消費"),
    ),
)


def test_a_manifest_survives_its_bytes() -> None:
    assert from_json(msgspec.json.encode(WHOLE)) == WHOLE


def test_every_file_is_named_once() -> None:
    assert sorted(file.path for file in WHOLE.files()) == ["groups/a", "heads/a", "layouts/a", "partitions/a"]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_half_a_manifest_is_refused(share: float) -> None:
    data = msgspec.json.encode(WHOLE)
    with pytest.raises(CorruptSnapshot):
        from_json(data[: int(len(data) * share)])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a field is missing", lambda raw: raw.pop("epoch")),
        ("a field nobody knows", lambda raw: raw.update(surprise=1)),
        ("a field nobody knows in a bucket", lambda raw: raw["buckets"][0].update(surprise=1)),
        ("a field nobody knows in a file", lambda raw: raw["heads"][0]["layout"].update(surprise=1)),
        ("a field nobody knows in a cluster", lambda raw: raw["clusters"]["ünïcode"].update(surprise=1)),
        ("no format", lambda raw: raw.pop("format")),
        ("a bucket without its files", lambda raw: raw.update(buckets=[{}])),
        ("a sample with half a time", lambda raw: raw["heads"][0].update(taken_ms={"one": [1]})),
        ("a request that is only a name", lambda raw: raw.update(requests=["delete-1"])),
        ("a request that nobody knows", lambda raw: raw["requests"][0].update(kind="reboot")),
        ("a cluster that is a number", lambda raw: raw.update(clusters={"one": 1})),
        ("a partition that is no number", lambda raw: raw["clusters"]["ünïcode"]["sources"].update(
            t={"topic_id": "", "positions": {"x": {}}}
        )),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_not_a_manifest_is_refused(name: str, change: Callable[[dict[str, Any]], Any]) -> None:
    raw = json.loads(msgspec.json.encode(WHOLE))
    change(raw)
    with pytest.raises(CorruptSnapshot) as raised:
        from_json(json.dumps(raw).encode())
    # A later version may have added a field: that is no damage.
    assert (raised.type is UnknownFormat) == name.startswith("a field nobody knows")


@pytest.mark.parametrize("data", [b"", b"null", b"[]", b"7", b'"x"', b"\xff\xfe", b"{}"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptSnapshot):
        from_json(data)


def test_another_format_says_which() -> None:
    raw = json.loads(msgspec.json.encode(WHOLE)) | {"format": FORMAT + 1}
    with pytest.raises(UnknownFormat, match=f"manifest format {FORMAT + 1} is not {FORMAT}: .* another version"):
        from_json(json.dumps(raw).encode())


@pytest.mark.parametrize(
    ("name", "is_catching_up", "error", "is_ready"),
    [
        ("all read", False, None, True),
        ("still reading", True, None, False),
        ("away while it was read", True, "no answer", True),
        ("away", False, "no answer", True),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_ready(name: str, is_catching_up: bool, error: str | None, is_ready: bool) -> None:
    other = cluster_state(is_catching_up=is_catching_up, error=error, unknown_since_ms=5)
    assert replace(WHOLE, clusters={"a": cluster_state(), "b": other}).is_ready is is_ready, name


def test_a_cluster_knows_whether_it_is_judged_and_how_much_is_left_to_read() -> None:
    judged = cluster_state(
        unknown_since_ms=None,
        sources={"a": Source("id", {0: Position(1, 20, 30), 1: Position(9, 9, 9)}), "b": Source("id", {})},
    )
    unknown = cluster_state(unknown_since_ms=5, sources={"a": Source("id", {0: Position(0, 2, 2)})})
    manifest = replace(WHOLE, clusters={"judged": judged, "unknown": unknown})
    assert judged.is_judged
    assert not unknown.is_judged
    assert manifest.unknown_clusters() == ["unknown"]
    assert (judged.backlog, unknown.backlog, manifest.backlog) == (19, 2, 21)
    assert [position.held_by_transactions for position in judged.positions()] == [10, 0]
