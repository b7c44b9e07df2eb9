"""The metrics for Prometheus: lag, clusters, incidents, sinks, and Warren's own health."""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import pyarrow as pa

from warren import __version__
from warren.config import Config
from warren.config.http import LEVELS
from warren.domain.matching import glob_error, matches_globs
from warren.errors import RequestError
from warren.incidents.store.database import StoreError
from warren.incidents.store.operator_actions import count_silences
from warren.incidents.store.reader import DeliveryCounts, count_open_incidents, read_delivery_counts, read_leadership
from warren.incidents.store.records import RecordReject
from warren.kafka.records.rejects import REJECT_DESCRIPTIONS
from warren.snapshot.manifest import ClusterState
from warren.snapshot.reloads import read_outcome
from warren.sources.zookeeper.layouts import ZnodeReject
from warren.web.api import Api, not_ready
from warren.web.http import Request, Response
from warren.web.index import Index
from warren.web.lag_metrics import LABEL_ESCAPES, Family, group_families, partition_families, topic_families
from warren.web.logins import Logins
from warren.web.overview import sink_answers

Labels = Mapping[str, str]
Samples = Sequence[tuple[Labels, float]]

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"


def metrics(api: Api, request: Request) -> Response:
    """Get all metrics, or those of some levels and names, for Prometheus."""
    index, config, now_ms = api.index, api.config, api.clock_ms()
    level, names = request.last("level", config.metrics.level), request.query.get("name[]", config.metrics.names)
    if level not in LEVELS:
        raise RequestError(f"level must be one of {', '.join(LEVELS)}, not {level[:20]!r}")
    for name in names:
        if error := glob_error(name):
            raise RequestError(f"name[] {name[:100]!r} {error}")
    families: Iterator[Family] = chain(
        partition_families(index) if level == "partition" else (),
        group_families(index) if level != "cluster" else (),
        topic_families(index) if level == "partition" else (),
        _cluster_families(index, config),
        _warren_families(index, now_ms),
        _config_families(config),
        _login_families(api.logins),
        _incident_families(config, now_ms),
        _sink_families(config),
    )
    if names:
        families = (family for family in families if matches_globs(pa.array([family.name]), names, ())[0])
    is_open_metrics = request.accepts("application/openmetrics-text", "accept")
    parts = _exposition(families, is_open_metrics=is_open_metrics)
    headers = [("Vary", "Accept, Accept-Encoding")]
    if request.accepts("gzip"):
        headers.append(("Content-Encoding", "gzip"))
        parts = _compress(parts)
    return Response(200, parts, OPEN_METRICS if is_open_metrics else PROMETHEUS, tuple(headers))


def _exposition(families: Iterable[Family], *, is_open_metrics: bool) -> Iterator[bytes | memoryview]:
    for family in families:
        # In OpenMetrics the samples of a counter end in _total, but its name does not.
        name = family.name.removesuffix("_total") if family.type == "counter" and is_open_metrics else family.name
        yield f"# HELP {name} {family.help}\n# TYPE {name} {family.type}".encode()
        yield from family.samples
        yield b"\n"
    if is_open_metrics:
        yield b"# EOF\n"


def _compress(parts: Iterator[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    compressor = zlib.compressobj(1, zlib.DEFLATED, 31)
    for part in parts:
        if compressed := compressor.compress(part):
            yield compressed
    yield compressor.flush()


def _cluster_families(index: Index, config: Config) -> Iterator[Family]:
    states = index.snapshot.manifest.clusters
    clusters = [({"cluster": name}, state) for name, state in states.items() if name in config.clusters]
    is_up = [(labels, int(state.is_judged)) for labels, state in clusters]
    yield _gauge("warren_cluster_up", "Whether a cluster answers and its groups are judged", is_up)
    lags = [(labels, state.totallag) for labels, state in clusters]
    yield _gauge("warren_cluster_lag", "Lag of all groups of a cluster, in messages", lags)
    groups = [(labels, state.groups_by_status) for labels, state in clusters]
    yield _gauge("warren_cluster_groups", "Groups of a cluster, by status", _by_status(groups))
    partitions = [(labels, state.partitions_by_status) for labels, state in clusters]
    help_text = "Partitions of the groups of a cluster, by status"
    yield _gauge("warren_cluster_partitions", help_text, _by_status(partitions))
    unknown = [(labels, index.unknown_groups(labels["cluster"])) for labels, _ in clusters]
    yield _gauge("warren_groups_unknown", "Groups of a cluster that cannot be judged", unknown)
    hidden = [(labels, state.hidden_topics) for labels, state in clusters]
    yield _gauge("warren_hidden_topics", "Topics of a cluster that Warren may no longer see", hidden)
    implausible = [(labels, state.implausible_commits) for labels, state in clusters]
    help_text = "Groups whose commits had a time that contradicts the others, counted in each cycle"
    yield _counter("warren_implausible_commits_total", help_text, implausible)
    positions = [
        ({**labels, "topic": topic, "partition": str(partition)}, position)
        for labels, state in clusters
        for topic, source in state.sources.items()
        for partition, position in source.positions.items()
    ]
    backlog = [(labels, position.backlog) for labels, position in positions]
    yield _gauge("warren_offsets_backlog", "Records of an offsets partition that are not read yet", backlog)
    held = [(labels, position.held_by_transactions) for labels, position in positions]
    help_text = "Records of an offsets partition that wait for an open transaction"
    yield _gauge("warren_offsets_held_by_transaction", help_text, held)
    yield from _zookeeper_families(clusters)


def _zookeeper_families(clusters: Iterable[tuple[Labels, ClusterState]]) -> Iterator[Family]:
    sections = [
        ({**labels, "consumer": name}, own) for labels, state in clusters for name, own in state.zookeeper.items()
    ]
    if not sections:
        return
    is_up = [(labels, int(own.error is None)) for labels, own in sections]
    yield _gauge("warren_zookeeper_up", "Whether the ZooKeeper of a consumer section can be read", is_up)
    znodes = [(labels, own.znodes) for labels, own in sections]
    yield _gauge("warren_zookeeper_znodes", "Znodes of a consumer section that are watched", znodes)
    pending = [(labels, own.pending) for labels, own in sections]
    yield _gauge("warren_zookeeper_znodes_pending", "Znodes that have changed and are not read yet", pending)
    requests = [(labels, own.requests) for labels, own in sections]
    help_text = "Requests to the ZooKeeper of a consumer section since its reader was started"
    yield _counter("warren_zookeeper_requests_total", help_text, requests)


def _by_status(counts: Iterable[tuple[Labels, Mapping[str, int]]]) -> Samples:
    return [({**labels, "status": status}, count) for labels, by in counts for status, count in by.items()]


def _warren_families(index: Index, now_ms: int) -> Iterator[Family]:
    yield _gauge("warren_build_info", "Version of Warren", [({"version": __version__}, 1)])
    is_ready = not_ready(index.snapshot, now_ms) is None
    yield _gauge("warren_ready", "Whether the verdicts are caught up and up to date", [({}, int(is_ready))])
    if not index.snapshot.is_judged:
        return
    manifest = index.snapshot.manifest
    age_s = max(now_ms - manifest.now_ms, 0) / 1000
    yield _gauge("warren_snapshot_age_seconds", "Age of the newest snapshot", [({}, age_s)])
    stages = [({"stage": stage}, took_ms / 1000) for stage, took_ms in manifest.cycle_ms.items()]
    yield _gauge("warren_cycle_stage_seconds", "Duration of each stage of the last cycle", stages)
    yield _gauge("warren_trigger_seconds", "Time between two cycles", [({}, manifest.trigger_ms / 1000)])
    help_text = "How often the clock of this machine was seen to be set"
    yield _counter("warren_clock_steps_total", help_text, [({}, manifest.clock_steps)])
    # Reasons without rejects are listed as well: Prometheus sees no increase in a series that begins at one.
    zeros = {description: 0 for reject, description in REJECT_DESCRIPTIONS.items() if reject}
    znode_zeros = {reject.value: 0 for reject in ZnodeReject}
    rejects = [
        ({"cluster": cluster, "reason": reason}, count)
        for cluster, state in manifest.clusters.items()
        for reason, count in {
            **zeros,
            **(znode_zeros if state.zookeeper else {}),
            **manifest.rejects.get(cluster, {}),
        }.items()
    ]
    help_text = "Records of offsets topics, and znodes, that could not be decoded"
    yield _counter("warren_rejected_records_total", help_text, rejects)


def _config_families(config: Config) -> Iterator[Family]:
    outcome = read_outcome(config.pipeline.data_dir)
    if outcome is None:
        return
    help_text = "Whether the last reload of the configuration was applied"
    yield _gauge("warren_config_last_reload_successful", help_text, [({}, int(outcome.is_successful))])
    help_text = "When the configuration in use was read"
    yield _gauge("warren_config_last_reload_success_timestamp_seconds", help_text, [({}, outcome.applied_ms / 1000)])


def _login_families(logins: Logins) -> Iterator[Family]:
    counts = [({"reason": "wrong"}, logins.failed), ({"reason": "too_many"}, logins.refused)]
    help_text = "Logins that failed since this server was started: wrong credentials, or too many failures before"
    yield _counter("warren_http_failed_logins_total", help_text, counts)


def _incident_families(config: Config, now_ms: int) -> Iterator[Family]:
    data_dir = config.pipeline.data_dir
    try:
        open_incidents, counts = count_open_incidents(data_dir), read_delivery_counts(data_dir)
    except StoreError:
        open_incidents, counts = {}, {}
    incidents = [({"cluster": name}, open_incidents.get(name, 0)) for name in sorted(config.clusters)]
    yield _gauge("warren_incidents_open", "Open incidents of a cluster", incidents)
    notifications = [
        ({"notifier": name, "state": state}, getattr(counts.get(name, DeliveryCounts()), state))
        for name in sorted(config.notifiers)
        for state in ("sent", "waiting", "given_up")
    ]
    help_text = "Notifications of a notifier, by state: sent, waiting or given_up"
    yield _gauge("warren_notifier_messages", help_text, notifications)
    leadership = read_leadership(data_dir, now_ms)
    yield _gauge("warren_notifier_active", "Whether this Warren notifies", [({}, int(leadership.is_active))])
    if config.has_leader_election and config.notifier_lock:
        help_text = "Members of the consumer group of the notifier lock that are not Warrens"
        yield _gauge("warren_notifier_lock_strangers", help_text, [({}, leadership.lock_strangers)])
    if config.has_replicated_incidents:
        rejects = [({"reason": reason}, leadership.rejects.get(reason, 0)) for reason in RecordReject]
        help_text = "Records of the shared incidents topic that were rejected since the start"
        yield _counter("warren_incidents_rejected_records_total", help_text, rejects)
    yield _gauge("warren_silences_active", "Silences in force", [({}, count_silences(data_dir, now_ms))])


def _sink_families(config: Config) -> Iterator[Family]:
    sinks = [({"sink": sink.name, "class": sink.class_name}, sink) for sink in sink_answers(config)]
    if not sinks:
        return
    for name, help_text, key in (
        ("warren_sink_intervals_waiting", "Intervals of a sink that are not delivered yet", "waiting"),
        ("warren_sink_bytes_waiting", "Bytes in a sink's spool that are not delivered yet", "waiting_bytes"),
        ("warren_sink_points", "Points that a sink sends per interval", "points"),
        ("warren_sink_intervals_dropped", "Intervals dropped from a full spool since the start", "dropped"),
        ("warren_sink_requests_refused", "Requests that the server refused for good since the start", "refused"),
    ):
        yield _gauge(name, help_text, [(labels, getattr(sink, key)) for labels, sink in sinks])
    delivered = [(labels, sink.delivered_ms / 1000) for labels, sink in sinks if sink.delivered_ms is not None]
    yield _gauge("warren_sink_delivered_seconds", "Time of the last interval that was delivered", delivered)
    is_up = [(labels, int(sink.state == "well")) for labels, sink in sinks]
    yield _gauge("warren_sink_up", "Whether a sink delivers without errors and is not behind", is_up)


def _counter(name: str, help_text: str, samples: Samples) -> Family:
    return replace(_gauge(name, help_text, samples), type="counter")


def _gauge(name: str, help_text: str, samples: Samples) -> Family:
    """A metric of few samples."""
    lines = []
    for labels, value in samples:
        pairs = ",".join(f'{label}="{text.translate(LABEL_ESCAPES)}"' for label, text in labels.items())
        lines.append(f"\n{name}{{{pairs}}} {value}" if pairs else f"\n{name} {value}")
    return Family(name, help_text, ["".join(lines).encode()])
