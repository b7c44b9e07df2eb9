"""Points as text: escaped right for every name, and read back by those who wrote the formats down."""

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.domain.windows import UNKNOWN
from warren.sinks.encode import bulk_request, ids_of, line_protocol, telegraf_json
from warren.sinks.points import Points

AT_MS = 1_534_905_460_000
ODD = [
    "a b",
    "a,b",
    "a=b",
    'say "hi"',
    "back\\slash",
    "end\\",
    "new\nline",
    "tab\t",
    "groß✓",
    "消費",
    "",
    "{}",
    "\u2028",
]


def points(*groups: str, lag: int = 7) -> Points:
    count = len(groups)
    return Points(
        "burrow_partition",
        {
            "cluster": pa.array(["c"] * count),
            "group": pa.array(groups, pa.string()),
            "partition": pa.array(["0"] * count),
        },
        {"status": pa.array(["OK"] * count), "owner": pa.array(groups, pa.string())},
        {"lag": np.full(count, lag), "offset": np.arange(count)},
    )


def parsed(line: str) -> tuple[str, dict[str, str], dict[str, str], int]:
    """A line as InfluxDB's documentation says it is read: a backslash takes the sign after it as it is."""
    parts = [""]
    is_quoted = False
    signs = iter(line)
    for sign in signs:
        if sign == "\\":
            after = next(signs)
            is_special = after in ('"\\' if is_quoted else ",= ")
            parts[-1] += after if is_special and is_quoted else (f"\\{after}")
        elif sign == '"':
            is_quoted = not is_quoted
            parts[-1] += sign
        elif sign == " " and not is_quoted:
            parts.append("")
        else:
            parts[-1] += sign
    series, fields, at = parts
    name, *tags = _split(series, ",")
    return name, dict(map(_pair, tags)), dict(map(_pair, _split(fields, ","))), int(at)


def _split(text: str, by: str) -> list[str]:
    found, is_quoted, at = [""], False, 0
    while at < len(text):
        if text[at] == "\\" and not is_quoted:
            found[-1] += text[at : at + 2]
            at += 2
            continue
        if text[at] == '"':
            is_quoted = not is_quoted
        if text[at] == by and not is_quoted:
            found.append("")
        else:
            found[-1] += text[at]
        at += 1
    return found


def _pair(text: str) -> tuple[str, str]:
    name, value = _split(text, "=")
    return name, value.replace("\\,", ",").replace("\\=", "=").replace("\\ ", " ")


def test_a_line_has_tags_fields_and_a_time_in_nanoseconds() -> None:
    made = bytes(line_protocol(points("g"), {"host": "h", "usage": "log stash"}, AT_MS)).decode()
    assert made == (
        "burrow_partition,host=h,usage=log\\ stash,cluster=c,group=g,partition=0 "
        'status="OK",owner="g",lag=7i,offset=0i 1534905460000000000\n'
    )


def test_what_is_not_known_is_left_out() -> None:
    made = bytes(line_protocol(points("g", "", lag=UNKNOWN), {}, AT_MS)).decode().splitlines()
    assert [line.removesuffix(" 1534905460000000000") for line in made] == [
        'burrow_partition,cluster=c,group=g,partition=0 status="OK",owner="g",offset=0i',
        'burrow_partition,cluster=c,partition=0 status="OK",offset=1i',
    ]
    assert "lag" not in json.loads(telegraf_json(points("g", lag=UNKNOWN), {}, AT_MS)[0].as_py())["fields"]


def test_decimals_have_a_point_always_and_one_that_is_not_known_is_left_out() -> None:
    seconds = np.array([12.0, 0.0, 0.0004, 86400.1259, np.nan, 31_536_000.0])
    some = replace(points(*"abcdef"), decimals={"seconds_behind": seconds})
    lines = bytes(line_protocol(some, {}, AT_MS)).decode().splitlines()
    assert [line.partition(" ")[2].partition("offset=")[2].split(" ")[0] for line in lines] == [
        "0i,seconds_behind=12.000", "1i,seconds_behind=0.000", "2i,seconds_behind=0.000",
        "3i,seconds_behind=86400.126", "4i", "5i,seconds_behind=31536000.000",
    ]  # fmt: skip
    objects = [json.loads(text)["fields"] for text in telegraf_json(some, {}, AT_MS).to_pylist()]
    assert [fields.get("seconds_behind") for fields in objects] == [12.0, 0.0, 0.0, 86400.126, None, 31536000.0]
    assert len(next(some.batches(4)).decimals["seconds_behind"]) == 4


@pytest.mark.parametrize("name", [name for name in ODD if name and "\n" not in name and not name.endswith("\\")])
def test_any_name_is_read_back_from_a_line(name: str) -> None:
    line = bytes(line_protocol(points(name), {}, AT_MS)).decode().removesuffix("\n")
    _, tags, _, _ = parsed(line)
    assert tags["group"] == name.replace("\t", "\\t")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=20, unique=True))
def test_no_name_makes_another_line_or_another_object(names: list[str]) -> None:
    some = points(*names)
    lines = bytes(line_protocol(some, {}, AT_MS)).decode().split("\n")
    assert len(lines) == len(names) + 1
    made = [json.loads(text) for text in telegraf_json(some, {"x": "y"}, AT_MS).to_pylist()]
    assert [one["tags"]["group"] for one in made] == names
    assert all(one["timestamp"] == AT_MS // 1000 and one["tags"]["x"] == "y" for one in made)
    bulk = bytes(bulk_request("burrow-%Y.%m.%d", some, {}, AT_MS)).decode().split("\n")[:-1]
    assert [json.loads(line)["tag"]["group"] for line in bulk[1::2]] == names
    assert len({json.loads(line)["create"]["_id"] for line in bulk[::2]}) == len(names)


def test_a_document_is_as_telegraf_makes_it() -> None:
    action, document = bytes(bulk_request("burrow-%Y.%m.%d", points("g"), {"host": "h"}, AT_MS)).splitlines()
    assert json.loads(action)["create"]["_index"] == "burrow-2018.08.22"
    assert json.loads(document) == {
        "@timestamp": "2018-08-22T02:37:40.000Z",
        "measurement_name": "burrow_partition",
        "tag": {"cluster": "c", "group": "g", "partition": "0", "host": "h"},
        "burrow_partition": {"status": "OK", "owner": "g", "lag": 7, "offset": 0},
    }


@pytest.mark.parametrize(
    ("other", "tags", "at_ms", "is_same"),
    [
        (points("g", lag=9), {"host": "h"}, AT_MS, True),
        (points("h"), {"host": "h"}, AT_MS, False),
        (points("g"), {"host": "i"}, AT_MS, False),
        (points("g"), {"host": "h"}, AT_MS + 1, False),
    ],
)
def test_an_id_is_of_what_a_point_is_about_and_when(
    other: Points, tags: Mapping[str, str], at_ms: int, is_same: bool
) -> None:
    mine = ids_of(points("g"), {"host": "h"}, AT_MS)[0].as_py()
    assert (ids_of(other, tags, at_ms)[0].as_py() == mine) is is_same
