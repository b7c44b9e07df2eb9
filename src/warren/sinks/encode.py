"""Points as text, by whole columns: InfluxDB's line protocol, bulk requests of Elasticsearch, telegraf's JSON."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from warren.domain.text_columns import as_text, bytes_of, joined, json_strings, replace_matching
from warren.domain.windows import UNKNOWN
from warren.sinks.points import Points

_ESCAPED_IN_TAGS = r"[\\,= \n\r\t\f\v]"
_TAG_ESCAPES = {",": r"\,", "=": r"\=", " ": r"\ ", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f", "\v": r"\v"}
_BACKSLASH_BEFORE_SPECIAL = re.compile(r"\\(?=[,= ]|\Z)")
_WIDE_BACKSLASH = "\uff3c"
_ESCAPED_IN_TEXTS = r'["\\\n\r]'


def line_protocol(points: Points, own_tags: Mapping[str, str], at_ms: int) -> memoryview:
    """Lines for InfluxDB, in nanoseconds; tags and fields without a value are left out."""
    own_tags = _without_point_tags(points, own_tags)
    own = "".join(f",{_tag(name)}={_tag(value)}" for name, value in sorted(own_tags.items()) if value)
    parts: list[str | pa.StringArray] = [f"{points.name}{own}"]
    for name, column in points.tags.items():
        parts.append(_unless_empty(column, joined(f",{name}=", _in_tags(column))))
    fields = [
        *(_unless_empty(column, joined(f',{name}="', _in_texts(column), '"')) for name, column in points.texts.items()),
        *(
            pc.if_else(pa.array(column == UNKNOWN), "", joined(f",{name}=", as_text(column), "i"))
            for name, column in points.numbers.items()
        ),
    ]
    # Each field begins with a comma; that of the first one goes.
    tail = joined(" ", pc.utf8_slice_codeunits(joined(*fields), 1), f" {at_ms}000000\n")
    return bytes_of(joined(*parts, tail))


@dataclass(frozen=True, slots=True)
class Documents:
    """Encodes points as documents of Elasticsearch."""

    index: str
    """The name of the index, with %Y, %m, %d and %H for the time."""

    def bulk_request(self, points: Points, own_tags: Mapping[str, str], at_ms: int) -> memoryview:
        """A bulk request that creates each document once, however often it is sent."""
        moment = datetime.fromtimestamp(at_ms / 1000, UTC)
        index = orjson.dumps(moment.strftime(self.index)).decode()
        time = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = f'{{"@timestamp":"{time}","measurement_name":"{points.name}","tag":'
        lines = joined(
            f'{{"create":{{"_index":{index},"_id":"', ids_of(points, own_tags, at_ms), '"}}\n', head,
            _tags(points, own_tags), f',"{points.name}":', _fields(points), "}\n",
        )  # fmt: skip
        return bytes_of(lines)


def ids_of(points: Points, own_tags: Mapping[str, str], at_ms: int) -> pa.StringArray:
    """A unique and stable id for each point: 128 bits of hash over its name and tags, and its time."""
    identities = joined(
        orjson.dumps([points.name, *sorted(own_tags.items())]).decode(),
        *(part for column in points.tags.values() for part in ("\0", column)),
    ).to_numpy(zero_copy_only=False)
    halves = [
        pd.util.hash_array(identities, hash_key=key, categorize=False)
        for key in ("warren-points-a1", "warren-points-b2")
    ]
    return joined(*(pc.cast(pa.array(half), pa.string()) for half in halves), f"-{at_ms}")


def telegraf_json(points: Points, own_tags: Mapping[str, str], at_ms: int) -> pa.StringArray:
    """A JSON object for each point, as telegraf writes it."""
    return joined(
        '{"fields":', _fields(points), f',"name":"{points.name}","tags":', _tags(points, own_tags),
        f',"timestamp":{at_ms // 1000}}}',
    )  # fmt: skip


def _tags(points: Points, own_tags: Mapping[str, str]) -> pa.StringArray:
    own = orjson.dumps(_without_point_tags(points, own_tags)).decode()[1:-1]
    parts: list[str | pa.StringArray] = []
    for name, column in points.tags.items():
        parts += [f'{"," if parts else ""}"{name}":', json_strings(column)]
    return joined("{", *parts, f",{own}" if own else "", "}")


def _without_point_tags(points: Points, own_tags: Mapping[str, str]) -> dict[str, str]:
    """The tags of a sink, except those that the points have themselves: no server takes a name twice."""
    return {name: value for name, value in own_tags.items() if name not in points.tags}


def _fields(points: Points) -> pa.StringArray:
    fields = [
        *(_unless_empty(column, joined(f',"{name}":', json_strings(column))) for name, column in points.texts.items()),
        *(
            pc.if_else(pa.array(column == UNKNOWN), "", joined(f',"{name}":', as_text(column)))
            for name, column in points.numbers.items()
        ),
    ]
    return joined("{", pc.utf8_slice_codeunits(joined(*fields), 1), "}")


def _unless_empty(column: pa.StringArray, text: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.equal(column, ""), "", text)


def _in_tags(column: pa.StringArray) -> pa.StringArray:
    return replace_matching(column, column, _ESCAPED_IN_TAGS, _tag)


def _tag(text: str) -> str:
    # A backslash escapes what follows it, at the end of a tag the separator: line protocol cannot express it there.
    return "".join(_TAG_ESCAPES.get(char, char) for char in _BACKSLASH_BEFORE_SPECIAL.sub(_WIDE_BACKSLASH, text))


def _in_texts(column: pa.StringArray) -> pa.StringArray:
    def escaped(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")

    return replace_matching(column, column, _ESCAPED_IN_TEXTS, escaped)
