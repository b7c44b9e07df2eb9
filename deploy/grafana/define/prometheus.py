"""Prometheus, and whatever speaks its language, by the metrics that Warren serves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import prometheus as prom
from grafana_foundation_sdk.models.dashboard import DataSourceRef

from deploy.grafana.define.asks import SOURCE_UID, STATUS, Ask, How, Level, Ready, Rows, Table

LABELS = {"group": "consumer_group"}
EXPORTER_LABELS = {"cluster": "cluster_name", "consumer_group": "group"}
"""Those of Kafka Lag Exporter."""


@dataclass(frozen=True)
class Metric:
    """Where a field is found."""

    name: str
    where: Mapping[str, str] = field(default_factory=dict)
    is_summed: bool = False
    """Whether a level's number is the sum of several series, and not the highest."""
    is_of_warren: bool = False
    """Whether it is the same for all clusters, and so does not name one."""
    times: int = 1
    is_left_out: bool = False
    """Whether it is left out where it would be zero."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels that are named otherwise than those of all other metrics, by the names that these have."""
    is_infinite: bool = False
    """Whether it is +Inf where something never happens, which is not shown."""


def _by_status(what: str, *statuses: str) -> dict[tuple[Level, str], Metric]:
    return {
        (Level.CLUSTER, f"{what}_{status.lower()}"): Metric(
            f"warren_cluster_{what}", {"status": status}, is_left_out=True
        )
        for status in statuses
    }


METRICS: Mapping[tuple[Level, str], Metric] = {
    (Level.CLUSTER, "judged"): Metric("warren_cluster_up"),
    (Level.CLUSTER, "total_lag"): Metric("warren_cluster_lag"),
    **_by_status("groups", "OK", "WARN", "ERR"),
    **_by_status("partitions", "OK", "WARN", "STOP", "STALL", "REWIND"),
    (Level.CLUSTER, "backlog"): Metric("warren_offsets_backlog", is_summed=True),
    (Level.CLUSTER, "held_by_transaction"): Metric("warren_offsets_held_by_transaction", is_summed=True),
    (Level.CLUSTER, "rejected"): Metric("warren_rejected_records_total", is_summed=True),
    (Level.CLUSTER, "age_ms"): Metric("warren_snapshot_age_seconds", is_of_warren=True, times=1000),
    (Level.CLUSTER, "cycle_ms"): Metric("warren_cycle_stage_seconds", is_summed=True, is_of_warren=True, times=1000),
    (Level.CLUSTER, "incidents"): Metric("warren_incidents_open"),
    (Level.GROUP, STATUS): Metric("burrow_kafka_consumer_status"),
    (Level.GROUP, "total_lag"): Metric("burrow_kafka_consumer_lag_total"),
    (Level.GROUP, "lag"): Metric("burrow_kafka_consumer_partition_lag"),
    (Level.GROUP, "total_offset"): Metric("burrow_kafka_consumer_current_offset", is_summed=True),
    (Level.GROUP, "seconds_behind"): Metric("kafka_consumergroup_group_max_lag_seconds", labels=EXPORTER_LABELS),
    (Level.GROUP, "catch_up_seconds"): Metric("warren_group_catch_up_seconds", is_infinite=True),
    (Level.GROUP, "retention_left_seconds"): Metric("warren_group_retention_left_seconds"),
    (Level.GROUP, "lost_messages"): Metric("warren_group_lost_messages"),
    (Level.PARTITION, "seconds_behind"): Metric("kafka_consumergroup_group_lag_seconds", labels=EXPORTER_LABELS),
    (Level.PARTITION, STATUS): Metric("burrow_kafka_topic_partition_status"),
    (Level.PARTITION, "lag"): Metric("burrow_kafka_consumer_partition_lag"),
    (Level.PARTITION, "offset"): Metric("burrow_kafka_consumer_current_offset"),
    (Level.HEAD, "offset"): Metric("burrow_kafka_topic_partition_offset"),
    (Level.SINK, "up"): Metric("warren_sink_up"),
    (Level.SINK, "waiting"): Metric("warren_sink_intervals_waiting"),
    (Level.NOTIFIER, "messages"): Metric("warren_notifier_messages"),
}


class Prometheus:
    """Asks in PromQL."""

    name = "prometheus"
    title = "Prometheus"
    all_value = ".*"
    source = DataSourceRef("prometheus", SOURCE_UID)

    def knows(self, ask: Ask | Rows) -> bool:
        """Whether there is a metric for each field."""
        fields = [ask.field, *([ask.plus] if ask.plus else [])] if isinstance(ask, Ask) else ask.columns.values()
        return all((ask.level, one) in METRICS for one in fields)

    def series(self, ask: Ask, held: Sequence[str], ref: str) -> list[Builder[Dataquery]]:
        """One request over time."""
        legend = "{{instance}}" if METRICS[ask.level, ask.field].is_of_warren else ask.legend
        for name in ask.names:
            legend = legend.replace(f"{{{name}}}", f"{{{{{_label(name)}}}}}")
        query = prom.Dataquery(
            _expression(ask, held), range_val=True, legend_format=legend, ref_id=ref, datasource=self.source,
            editor_mode=prom.QueryEditorMode.CODE,
        )  # fmt: skip
        return [Ready(query)]

    def table(self, rows: Rows, held: Sequence[str]) -> Table:
        """A request a column, of now."""
        targets, titles = [], {_label(name): name for name in rows.names}
        for ref, (title, column) in zip("ABCDEFGH", rows.columns.items(), strict=False):
            metric = METRICS[rows.level, column]
            expression = _over(metric, rows.names, f"{metric.name}{_matchers(metric, rows.level, held)}")
            query = prom.Dataquery(
                expression, instant=True, range_val=False, format_val=prom.PromQueryFormat.TABLE, ref_id=ref,
                datasource=self.source, editor_mode=prom.QueryEditorMode.CODE,
            )  # fmt: skip
            targets.append(Ready(query))
            titles[f"Value #{ref}"] = title
        if len(targets) == 1:
            titles = {("Value" if raw == "Value #A" else raw): title for raw, title in titles.items()}
        return Table(targets, titles, is_merged=len(targets) > 1)

    def values(self, name: str, level: Level, held: Sequence[str]) -> str:
        """The values of a label."""
        metric = METRICS[_VALUES_OF[level]]
        return f"label_values({metric.name}{_matchers(metric, level, held)}, {_label(name)})"

    def label(self, name: str) -> str:
        """A label."""
        return f"labels.{_label(name)}"

    def legend(self, ask: Ask) -> str:
        """The request says it."""
        del ask
        return ""

    def note(self, rows: Rows) -> str:
        """A label for the owner would end a series at every rebalance."""
        return "Prometheus has no owners; Warren's page of the group names them." if rows.words else ""


_VALUES_OF = {
    Level.CLUSTER: (Level.CLUSTER, "judged"),
    Level.GROUP: (Level.GROUP, STATUS),
    Level.PARTITION: (Level.PARTITION, "lag"),
    Level.HEAD: (Level.HEAD, "offset"),
}


def _expression(ask: Ask, held: Sequence[str]) -> str:
    made = _number(ask, held)
    return f"{made} > {ask.above}" if ask.above is not None else made


def _number(ask: Ask, held: Sequence[str]) -> str:
    metric = METRICS[ask.level, ask.field]
    series = f"{metric.name}{_matchers(metric, ask.level, held)}"
    match ask.how:
        case How.WORST:
            made = _over(metric, ask.names, f"max_over_time({series}[$__rate_interval])")
            return f"{made} or {_zero(held)}" if metric.is_left_out else made
        case How.SUM:
            return f"sum by ({_labels(metric, ask.names)}) ({series})"
        case How.RATE if ask.plus:
            other = METRICS[ask.level, ask.plus]
            more = f"{other.name}{_matchers(other, ask.level, held)}"
            return f"clamp_min({_slope(metric, ask.names, series)} + {_slope(other, ask.names, more)}, 0)"
        case How.RATE:
            # Not rate(), which takes a consumer that went back for a counter that starts anew.
            return f"sum by ({_labels(metric, ask.names)}) (clamp_min(deriv({series}[$__rate_interval]), 0))"
        case How.GROWTH:
            return _slope(metric, ask.names, series)


def _over(metric: Metric, names: Sequence[str], inner: str) -> str:
    for label, own in metric.labels.items():
        inner = f'label_replace({inner}, "{label}", "$1", "{own}", "(.*)")'
    made = f"{'sum' if metric.is_summed else 'max'} by ({_labels(metric, names)}) ({inner})"
    made = f"{made} < Inf" if metric.is_infinite else made
    return f"{metric.times} * {made}" if metric.times != 1 else made


def _zero(held: Sequence[str]) -> str:
    """Nothing for every cluster that is judged."""
    judged = METRICS[Level.CLUSTER, "judged"]
    return f"0 * max by (cluster) ({judged.name}{_matchers(judged, Level.CLUSTER, held)} == 1)"


def _slope(metric: Metric, names: Sequence[str], series: str) -> str:
    return f"sum by ({_labels(metric, names)}) (deriv({series}[$__rate_interval]))"


def _labels(metric: Metric, names: Sequence[str]) -> str:
    return "instance" if metric.is_of_warren else ", ".join(_label(name) for name in names)


def _label(name: str) -> str:
    return LABELS.get(name, name)


def _matchers(metric: Metric, level: Level, held: Sequence[str]) -> str:
    chosen = [] if metric.is_of_warren else [name for name in level.value if name in held]
    made = [f'{metric.labels.get(_label(name), _label(name))}=~"${name}"' for name in chosen]
    made += [f'{name}="{value}"' for name, value in metric.where.items()]
    return f"{{{', '.join(made)}}}" if made else ""
