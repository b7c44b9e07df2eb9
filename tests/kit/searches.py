"""Grafana's model of a search as the search that it sends to Elasticsearch, and the answer as series or rows."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.kit.grafana import Series

Json = dict[str, Any]
TIME = "@timestamp"


def search_of(target: Json, query: str, from_ms: int, to_ms: int, interval_ms: int) -> Json:
    """The search of a panel's request, or of a rule's."""
    made: Json = {"size": 0, "query": _filtered(query, from_ms, to_ms)}
    inner = made
    for bucket in target["bucketAggs"]:
        inner["aggs"] = {**inner.get("aggs", {}), bucket["id"]: _bucket(bucket, target, from_ms, to_ms, interval_ms)}
        inner = inner["aggs"][bucket["id"]]
    inner["aggs"] = {**inner.get("aggs", {}), **{one["id"]: _metric(one) for one in target["metrics"]}}
    return made


def terms_of(wanted: Json, query: str, from_ms: int, to_ms: int) -> Json:
    """The search for the values of a variable."""
    assert wanted["find"] == "terms"
    terms = {"field": wanted["field"], "size": wanted.get("size", 500), "order": {"_key": "asc"}}
    return {"size": 0, "query": _filtered(query, from_ms, to_ms), "aggs": {"1": {"terms": terms}}}


def _filtered(query: str, from_ms: int, to_ms: int) -> Json:
    when = {"gte": from_ms, "lte": to_ms, "format": "epoch_millis"}
    text = {"analyze_wildcard": True, "query": query}
    return {"bool": {"filter": [{"range": {TIME: when}}, {"query_string": text}]}}


def _bucket(bucket: Json, target: Json, from_ms: int, to_ms: int, interval_ms: int) -> Json:
    settings = bucket["settings"]
    if bucket["type"] == "date_histogram":
        interval = f"{interval_ms}ms" if settings["interval"] == "auto" else settings["interval"]
        bounds = {"min": from_ms, "max": to_ms}
        least = int(settings["min_doc_count"])
        made = {"field": bucket["field"], "fixed_interval": interval, "min_doc_count": least, "extended_bounds": bounds}
        return {"date_histogram": {**made, "format": "epoch_millis"}}
    assert bucket["type"] == "terms"
    order = settings["orderBy"]
    terms: Json = {"field": bucket["field"], "size": int(settings["size"]), "order": {order: settings["order"]}}
    terms["min_doc_count"] = int(settings["min_doc_count"])
    if "missing" in settings:
        terms["missing"] = settings["missing"]
    by = [_metric(one) for one in target["metrics"] if one["id"] == order]
    return {"terms": terms, "aggs": {order: by[0]}} if by else {"terms": terms}


def _metric(metric: Json) -> Json:
    if metric["type"] == "derivative":
        return {"derivative": {"buckets_path": metric["field"], **metric["settings"]}}
    assert metric["type"] in ("max", "sum", "cardinality")
    return {metric["type"]: {"field": metric["field"]}}


def series_of(target: Json, answer: Json) -> list[Series]:
    """Series of an answer, one for each metric that is not hidden."""
    shown = [one["id"] for one in target["metrics"] if not one.get("hide")]
    found = []
    for labels, leaf in _leaves(target, answer["aggregations"], 0, {}):
        for number in shown:
            points = {
                bucket["key"]: bucket[number].get("normalized_value", bucket[number]["value"])
                for bucket in leaf
                if number in bucket
            }
            found.append(Series(labels, points))
    return found


def rows_of(target: Json, answer: Json) -> list[Json]:
    """Rows of an answer, columns named as Grafana does."""
    *_, last = target["bucketAggs"]
    several = len(target["metrics"]) > 1
    titles = {one["id"]: f"Max {one['field']}" if several else "Max" for one in target["metrics"]}
    return [
        {**labels, last["field"]: bucket["key"], **{title: bucket[number]["value"] for number, title in titles.items()}}
        for labels, leaf in _leaves(target, answer["aggregations"], 0, {})
        for bucket in leaf
    ]


def _leaves(
    target: Json, found: Json, depth: int, labels: Mapping[str, str]
) -> Iterator[tuple[dict[str, str], list[Json]]]:
    bucket = target["bucketAggs"][depth]
    buckets = found[bucket["id"]]["buckets"]
    if depth == len(target["bucketAggs"]) - 1:
        yield dict(labels), buckets
        return
    for one in buckets:
        yield from _leaves(target, one, depth + 1, {**labels, bucket["field"]: str(one["key"])})
