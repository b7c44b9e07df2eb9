"""Points as text, by whole columns: InfluxDB's line protocol, bulk requests of Elasticsearch, telegraf's JSON."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from warren.domain.arrays import Floats
from warren.domain.text_columns import as_text, bytes_of, joined, json_strings, replace_matching
from warren.domain.windows import UNKNOWN
from warren.sinks.points import Points

_TEXT_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})
_TAG_ESCAPES = str.maketrans(
    {",": r"\,", "=": r"\=", " ": r"\ ", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f", "\v": r"\v"}
)
_BACKSLASH_BEFORE_SPECIAL = re.compile(r"\\(?=[,= ]|\Z)")
_WIDE_BACKSLASH = "\uff3c"


def line_protocol(points: Points, own_tags: Mapping[str, str], at_ms: int) -> memoryview:
    """Lines for InfluxDB, in nanoseconds; tags and fields without a value are left out."""
    own_tags = _without_point_tags(points, own_tags)
    own = "".join(f",{_tag(name)}={_tag(value)}" for name, value in sorted(own_tags.items()) if value)
    tags = [
        _unless_empty(column, joined(f",{name}=", replace_matching(column, column, r"[\\,= \n\r\t\f\v]", _tag)))
        for name, column in points.tags.items()
    ]
    fields = _fields(points, ",{}=", _quoted, "i")
    return bytes_of(joined(f"{points.name}{own}", *tags, " ", fields, f" {at_ms}000000\n"))


def bulk_request(index: str, points: Points, own_tags: Mapping[str, str], at_ms: int) -> memoryview:
    """A bulk request of Elasticsearch that creates each document once, however often it is sent.

    The name of the index may have %Y, %m, %d and %H for the time.
    """
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    index = orjson.dumps(moment.strftime(index)).decode()
    time = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    lines = joined(
        f'{{"create":{{"_index":{index},"_id":"', ids_of(points, own_tags, at_ms), '"}}\n',
        f'{{"@timestamp":"{time}","measurement_name":"{points.name}","tag":', _json_tags(points, own_tags),
        f',"{points.name}":{{', _fields(points, ',"{}":', json_strings), "}}\n",
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
        '{"fields":{', _fields(points, ',"{}":', json_strings), f'}},"name":"{points.name}","tags":',
        _json_tags(points, own_tags), f',"timestamp":{at_ms // 1000}}}',
    )  # fmt: skip


def _json_tags(points: Points, own_tags: Mapping[str, str]) -> pa.StringArray:
    own = orjson.dumps(_without_point_tags(points, own_tags)).decode()[1:-1]
    tags = [part for name, column in points.tags.items() for part in (",", f'"{name}":', json_strings(column))]
    return joined("{", *tags[1:], f",{own}" if own else "", "}")


def _without_point_tags(points: Points, own_tags: Mapping[str, str]) -> dict[str, str]:
    """The tags of a sink, except those that the points have themselves: no server takes a name twice."""
    return {name: value for name, value in own_tags.items() if name not in points.tags}


def _fields(
    points: Points, key: str, quote: Callable[[pa.StringArray], pa.StringArray], after_number: str = ""
) -> pa.StringArray:
    """The fields of each point that have a value, separated by commas."""
    texts = [_unless_empty(column, joined(key.format(name), quote(column))) for name, column in points.texts.items()]
    numbers = [
        pc.if_else(pa.array(column == UNKNOWN), "", joined(key.format(name), as_text(column), after_number))
        for name, column in points.numbers.items()
    ]
    decimals = [joined(key.format(name), as_decimals(column)) for name, column in points.decimals.items()]
    known = [pc.coalesce(field, "") for field in decimals]
    # Each field begins with a comma; that of the first one goes.
    return pc.utf8_slice_codeunits(joined(*texts, *numbers, *known), 1)


def as_decimals(numbers: Floats) -> pa.StringArray:
    """Positive numbers as text, to three decimal places; null for NaN.

    All of them have a decimal point: servers take the type of a field from the first value that they see.
    """
    is_known = ~np.isnan(numbers)
    thousandths = np.rint(np.where(is_known, numbers, 0.0) * 1000).astype(np.int64)
    fraction = pc.utf8_lpad(as_text(thousandths % 1000), 3, "0")
    return pc.if_else(
        pa.array(is_known), joined(as_text(thousandths // 1000), ".", fraction), pa.scalar(None, pa.string())
    )


def _unless_empty(column: pa.StringArray, text: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.equal(column, ""), "", text)


def _tag(text: str) -> str:
    # A backslash escapes what follows it, at the end of a tag the separator: line protocol cannot express it there.
    return _BACKSLASH_BEFORE_SPECIAL.sub(_WIDE_BACKSLASH, text).translate(_TAG_ESCAPES)


def _quoted(column: pa.StringArray) -> pa.StringArray:
    return replace_matching(
        column, joined('"', column, '"'), r'["\\\n\r]', lambda text: f'"{text.translate(_TEXT_ESCAPES)}"'
    )
