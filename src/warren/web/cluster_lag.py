"""All groups of a cluster in one answer: filtered, paged, and sent while it is made."""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from warren.domain.status import Status
from warren.errors import RequestError
from warren.web.go_json import dumps
from warren.web.groups import status_of
from warren.web.http import Response, number_in
from warren.web.index import Index

GROUPS_A_PART = 200
LIMIT_MOST = 1_000_000
STARS_MOST = 20
"""How many * a question may have: with thousands of them, each name takes as many steps."""
_GROUP_STATUS = ("OK", "WARN", "ERR")


def answer(index: Index, cluster: str, query: Mapping[str, Sequence[str]], about: Mapping[str, str]) -> Response:
    """The groups that are asked for, in the order of their names, after the cluster's roll-up."""
    chosen = _chosen(index, cluster, query)
    show_all = _one(query, "partitions", "bad", ("bad", "all")) == "all"
    limit = number_in(query, "limit", LIMIT_MOST)
    page = chosen[:limit]
    last = index.group_names[int(page[-1])].as_py() if page.size and page.size < chosen.size else None
    head = {
        "error": False,
        "message": "consumer group lags returned",
        "cluster": roll_up(index, cluster),
        "total": int(chosen.size),
        "next": last,
    }
    return Response(200, _parts(index, page, show_all, head, about))


def _parts(
    index: Index, page: NDArray[np.int64], show_all: bool, head: Mapping[str, object], about: Mapping[str, str]
) -> Iterator[bytes]:
    yield dumps(head)[:-1] + b',"groups":['
    for at in range(0, page.size, GROUPS_A_PART):
        held = [status_of(index, number, show_all=show_all) for number in page[at : at + GROUPS_A_PART].tolist()]
        yield (b"," if at else b"") + b",".join(held)
    yield b'],"request":' + dumps(about) + b"}"


def roll_up(index: Index, cluster: str) -> dict[str, object]:
    """A cluster as a whole: how many groups are how, and whether it is known at all."""
    state = index.snapshot.manifest.clusters.get(cluster) if index.snapshot else None
    if state is None:
        return {"name": cluster, "status": Status.NOTFOUND.name, "totallag": 0, "groups": {}, "partitions": {}}
    return {
        "name": cluster,
        "status": state.worst_status,
        "totallag": state.totallag,
        "groups": dict(state.groups_by_status),
        "partitions": dict(state.partitions_by_status),
        "unknown_since": state.unknown_since_ms,
        "error_message": state.error,
        "catching_up": state.is_catching_up,
        "judged_at": index.snapshot.manifest.now_ms if index.snapshot else None,
    }


def _chosen(index: Index, cluster: str, query: Mapping[str, Sequence[str]]) -> NDArray[np.int64]:
    numbers = np.fromiter(index.groups.get(cluster, {}).values(), np.int64)
    unknown = set(query) - {"status", "group", "limit", "after", "partitions"}
    if unknown:
        raise RequestError(f"unknown parameter {min(unknown)}: there are status, group, partitions, limit, after")
    wanted = [word.upper() for given in query.get("status", ()) for word in given.split(",") if word]
    if wanted:
        wrong = [word for word in wanted if word not in _GROUP_STATUS]
        if wrong:
            raise RequestError(f"unknown status {wrong[0]}: a group is OK, WARN or ERR")
        codes = [int(Status[word]) for word in wanted]
        numbers = numbers[np.isin(index.of_groups["status"][numbers], codes)]
    patterns = query.get("group", ())
    if sum(pattern.count("*") for pattern in patterns) > STARS_MOST:
        raise RequestError(f"group has more than {STARS_MOST} *")
    if numbers.size and patterns:
        names = index.group_names.take(pa.array(numbers))
        fits = [np.asarray(pc.match_substring_regex(names, _pattern(pattern))) for pattern in patterns]
        numbers = numbers[np.logical_or.reduce(fits)]
    after = query.get("after", ("",))[-1]
    if after and numbers.size:
        numbers = numbers[np.asarray(pc.greater(index.group_names.take(pa.array(numbers)), after))]
    return numbers


def _pattern(pattern: str) -> str:
    """A name with * and ? in it, as a regular expression of RE2, which never takes for ever."""
    special = {"*": ".*", "?": "."}
    return "(?s)^" + "".join(special.get(character) or re.escape(character) for character in pattern) + "$"


def _one(query: Mapping[str, Sequence[str]], name: str, default: str, allowed: Sequence[str]) -> str:
    given = query.get(name, (default,))[-1]
    if given not in allowed:
        raise RequestError(f"{name} must be {' or '.join(allowed)}, not {given[:20]!r}")
    return given
