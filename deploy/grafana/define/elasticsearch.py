"""Elasticsearch and OpenSearch by Grafana's own model of a search, with fields as Warren's template keeps them."""

from collections.abc import Sequence
from dataclasses import replace

from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import elasticsearch as es
from grafana_foundation_sdk.models.dashboard import DataSourceRef
from grafana_foundation_sdk.models.expr import TypeMath

from deploy.grafana.define.asks import MEASUREMENTS, SOURCE_UID, Ask, How, Level, Ready, Rows, Table, is_written

TIME = "@timestamp"
NOBODY = "-"
MOST = "500"
EXPRESSION = DataSourceRef("__expr__", "__expr__")


class Elasticsearch:
    """Asks by aggregations."""

    name = "elasticsearch"
    title = "Elasticsearch"
    all_value = "*"
    source = DataSourceRef("elasticsearch", SOURCE_UID)

    def knows(self, ask: Ask | Rows) -> bool:
        """Whether sinks write it."""
        return is_written(ask)

    def series(self, ask: Ask, held: Sequence[str], ref: str) -> list[Builder[Dataquery]]:
        """One request, or two and what Grafana makes of both."""
        if ask.how is How.SUM:
            # No aggregation sums over partitions but not over time: the sum of all is divided by the number of moments.
            moments = es.UniqueCount(field=TIME, id_val="1")
            return [
                self._target(
                    ask, held, f"{ref}sum", [es.Sum(field=_field(ask, ask.field), id_val="1")], is_hidden=True
                ),
                self._target(ask, held, f"{ref}moments", [moments], is_hidden=True),
                _math(ref, f"${ref}sum / ${ref}moments"),
            ]
        if ask.plus:
            parts = [replace(ask, plus=""), replace(ask, plus="", field=ask.plus)]
            names = [f"{ref}{part.field.replace('_', '')}" for part in parts]
            targets = [
                self._target(part, held, name, _metrics(part), is_hidden=True)
                for part, name in zip(parts, names, strict=True)
            ]
            return [*targets, _math(ref, " + ".join(f"${name}" for name in names))]
        return [self._target(ask, held, ref, _metrics(ask))]

    def _target(
        self, ask: Ask, held: Sequence[str], ref: str, metrics: list[es.MetricAggregation], *, is_hidden: bool = False
    ) -> Builder[Dataquery]:
        some = _query(ask.level, held) + (
            f" AND {_field(ask, ask.field)}:>{ask.above}" if ask.above is not None else ""
        )
        # With an alias Grafana adds a label, by which the series of two requests would not find each other.
        alias = "" if is_hidden else ask.legend
        for name in ask.names:
            alias = alias.replace(f"{{{name}}}", f"{{{{term tag.{name}}}}}")
        # A derivative wants the empty intervals too.
        over_time = es.DateHistogram(
            field=TIME,
            id_val="90",
            settings=es.ElasticsearchDateHistogramSettings(interval="auto", min_doc_count="0"),
        )
        buckets: list[es.BucketAggregation] = [*_terms([f"tag.{name}" for name in ask.names]), over_time]
        return Ready(
            es.Dataquery(
                alias=alias,
                query=some,
                time_field=TIME,
                bucket_aggs=buckets,
                metrics=metrics,
                ref_id=ref,
                hide=is_hidden or None,
                datasource=self.source,
            )
        )

    def table(self, rows: Rows, held: Sequence[str]) -> Table:
        """The worst of each in the time of the panel."""
        fields = [_field(rows, column) for column in rows.columns.values()]
        ordered = [rows.order, *(title for title in rows.columns if title != rows.order)]
        metrics: list[es.MetricAggregation] = [
            es.Max(field=_field(rows, rows.columns[title]), id_val=str(number))
            for number, title in enumerate(ordered, 1)
        ]
        texts = [_field(rows, column) for column in rows.words.values()]
        query = es.Dataquery(
            query=_query(rows.level, held),
            time_field=TIME,
            bucket_aggs=[
                *_terms([f"tag.{name}" for name in rows.names], "1"),
                *_terms(texts, "1", first=20, missing=NOBODY),
            ],
            metrics=metrics,
            ref_id="A",
            datasource=self.source,
        )
        titles = {f"tag.{name}": name for name in rows.names}
        # Grafana names a column by its field only where there are several of its kind.
        several = len(fields) > 1
        titles |= {f"Max {one}" if several else "Max": title for one, title in zip(fields, rows.columns, strict=True)}
        titles |= dict(zip(texts, rows.words, strict=True))
        return Table([Ready(query)], titles)

    def values(self, name: str, level: Level, held: Sequence[str]) -> str:
        """The names that documents have, as JSON that Grafana reads."""
        return f'{{"find": "terms", "field": "tag.{name}", "size": 5000, "query": "{_query(level, held)}"}}'

    def label(self, name: str) -> str:
        """A field has a dot in its name."""
        return f'labels["tag.{name}"]'

    def legend(self, ask: Ask) -> str:
        """What Grafana makes of two requests has no alias."""
        if ask.how is not How.SUM and not ask.plus:
            return ""
        legend = ask.legend
        for name in ask.names:
            legend = legend.replace(f"{{{name}}}", f"${{__field.{self.label(name)}}}")
        return legend

    def note(self, rows: Rows) -> str:
        """An aggregation has no newest, only a highest."""
        del rows
        return "Numbers are the highest of the last five minutes."


def _metrics(ask: Ask) -> list[es.MetricAggregation]:
    of = _field(ask, ask.field)
    if ask.how is How.WORST:
        return [es.Max(field=of, id_val="1")]
    per_second = es.ElasticsearchDerivativeSettings(unit="1s")
    return [
        es.Max(field=of, id_val="1", hide=True),
        es.Derivative(pipeline_agg="1", field="1", id_val="2", settings=per_second),
    ]


def _terms(
    fields: Sequence[str], order: str = "_key", *, first: int = 10, missing: str | None = None
) -> list[es.Terms]:
    return [
        es.Terms(
            field=field,
            id_val=str(number),
            settings=es.ElasticsearchTermsSettings(
                order=es.TermsOrder.DESC, size=MOST, min_doc_count="1", order_by=order, missing=missing
            ),
        )
        for number, field in enumerate(fields, first)
    ]


def _field(ask: Ask | Rows, field: str) -> str:
    return f"{MEASUREMENTS[ask.level]}.{field}"


def _query(level: Level, held: Sequence[str]) -> str:
    own = [f"tag.{name}:${{{name}:lucene}}" for name in level.value if name in held]
    return " AND ".join([f"measurement_name:{MEASUREMENTS[level]}", *own])


def _math(ref: str, expression: str) -> Builder[Dataquery]:
    return Ready(TypeMath(EXPRESSION, expression, ref_id=ref))
