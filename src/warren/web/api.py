"""Every path of the API and what it answers, from the index of the newest snapshot."""

import json
import logging
import platform
import time
from collections.abc import Callable

import numpy as np

from warren.config import Config
from warren.domain.status import Status
from warren.domain.windows import UNKNOWN
from warren.errors import RequestError
from warren.history.read import cluster_history, clusters_history, group_history
from warren.logs import LEVELS, set_level
from warren.snapshot.requests import RequestKind, RequestQueue
from warren.web import assets, cluster_lag, config_answers, groups, metrics
from warren.web.go_json import dumps
from warren.web.http import TEXT, CachedBody, Endpoint, Handler, Request, Response, json_answer, number_in
from warren.web.incidents import IncidentEndpoints
from warren.web.index import Index
from warren.web.index_follower import Follower
from warren.web.openapi import HOURS_MOST, document
from warren.web.overview import group_columns, overview, topic_detail
from warren.web.page import PAGE, PAGE_POLICY
from warren.web.readiness import not_ready
from warren.web.responses import Responder
from warren.web.silences import SilenceEndpoints
from warren.web.sinks import sinks_answer

log = logging.getLogger(__name__)

_GO_LEVELS = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warn",
    logging.ERROR: "error",
    logging.CRITICAL: "fatal",
}
_TO_SET = ("trace", "debug", "info", "warn", "warning", "error", "fatal")


class Api:
    """Answers requests; knows nothing of sockets."""

    def __init__(
        self,
        config: Config,
        follower: Follower,
        requests: RequestQueue,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._config = config
        self._follower = follower
        self._requests = requests
        self._clock_ms = clock_ms
        self._speaker = Responder(platform.node())
        self._host_json = dumps(self._speaker.host)
        self._all_groups: tuple[Index | None, CachedBody | None] = (None, None)
        self._incidents = IncidentEndpoints(config, self._speaker, clock_ms)
        self._wishes = SilenceEndpoints(config, self._speaker, self._incidents, clock_ms)

    @property
    def index(self) -> Index:
        """What is answered from."""
        return self._follower.index

    def routes(self) -> list[Endpoint]:
        """Every path, in the order in which people read about them."""
        consumer = "/v3/kafka/{cluster}/consumer/{consumer}"
        kinds = ("storage", "evaluator", "cluster", "consumer", "notifier")

        def get(path: str, answer: Callable[[Request], Response], **traits: bool) -> Endpoint:
            return Endpoint(path, {"GET": Handler(answer, **traits)})

        def admin(answer: Callable[[Request], Response]) -> Handler:
            return Handler(answer, is_admin=True, is_slow=True)

        level = {"GET": Handler(self.log_level), "POST": admin(self.set_log_level)}
        delete = admin(self.delete)
        return [
            get("/burrow/admin", self.admin, is_open=True),
            get("/burrow/admin/ready", self.ready, is_open=True),
            get("/metrics", self.metrics, is_slow=True),
            get("/openapi.json", self.openapi),
            get("/docs", self.docs),
            get("/", assets.home, is_slow=True),
            get("/assets/{asset}", self.asset, is_slow=True),
            get("/v3/overview", self.overview, is_slow=True),
            get("/v3/groups", self.all_groups, is_slow=True),
            get("/v3/history", self.all_history, is_slow=True),
            get("/v3/incidents", self._incidents.incidents, is_slow=True),
            get("/v3/incidents/{incident}", self._incidents.incident, is_slow=True),
            Endpoint(
                "/v3/incidents/{incident}/acknowledge",
                {"POST": admin(self._wishes.acknowledge), "DELETE": admin(self._wishes.take_back)},
            ),
            Endpoint(
                "/v3/silences",
                {"GET": Handler(self._wishes.silences, is_slow=True), "POST": admin(self._wishes.silence)},
            ),
            Endpoint("/v3/silences/{silence}", {"DELETE": admin(self._wishes.end_silence)}),
            get("/v3/notifiers", self._incidents.notifiers, is_slow=True),
            get("/v3/sinks", self.sinks, is_slow=True),
            get("/v3/kafka", self.clusters, is_cached=True),
            get("/v3/kafka/{cluster}", self.cluster, is_cached=True),
            get("/v3/kafka/{cluster}/lag", self.cluster_lag, is_slow=True),
            get("/v3/kafka/{cluster}/history", self.cluster_history, is_slow=True),
            get("/v3/kafka/{cluster}/topic", self.topics, is_cached=True),
            get("/v3/kafka/{cluster}/topic/{topic}", self.topic, is_cached=True),
            get("/v3/kafka/{cluster}/topic/{topic}/consumers", self.topic_consumers, is_cached=True),
            get("/v3/kafka/{cluster}/topic/{topic}/detail", self.topic_detail, is_slow=True),
            get("/v3/kafka/{cluster}/consumer", self.consumers, is_cached=True),
            Endpoint(consumer, {"GET": Handler(self.consumer, is_cached=True, is_slow=True), "DELETE": delete}),
            get(f"{consumer}/status", self.status, is_cached=True),
            get(f"{consumer}/lag", self.lag, is_cached=True),
            get(f"{consumer}/explain", self.explain, is_cached=True, is_slow=True),
            get(f"{consumer}/history", self.history, is_slow=True),
            Endpoint(f"{consumer}/topic/{{topic}}", {"DELETE": delete}),
            get("/v3/config", self.config),
            *(get(f"/v3/config/{kind}", self.modules) for kind in kinds),
            *(get(f"/v3/config/{kind}/{{name}}", self.module) for kind in kinds),
            Endpoint("/v3/admin/loglevel", level),
        ]

    def admin(self, _: Request) -> Response:
        """The server is there."""
        return Response(200, b"GOOD", TEXT)

    def ready(self, _: Request) -> Response:
        """The verdicts are those of now: caught up, and fresh."""
        why = not_ready(self.index.snapshot, self._clock_ms())
        return Response(200, b"READY", TEXT) if why is None else Response(503, why.encode(), TEXT)

    def metrics(self, request: Request) -> Response:
        """All series, for Prometheus."""
        return metrics.answer(self.index, self._config, request.headers, self._clock_ms())

    def openapi(self, _: Request) -> Response:
        """This API, described."""
        return json_answer(document(self.routes()))

    def docs(self, _: Request) -> Response:
        """A page to browse this API with."""
        return Response(200, PAGE.encode(), "text/html; charset=utf-8", (("Content-Security-Policy", PAGE_POLICY),))

    def asset(self, request: Request) -> Response:
        """A file of the dashboard."""
        return assets.asset(request) or self._speaker.error(request, 404, "there is no such file")

    def overview(self, request: Request) -> Response:
        """All clusters at a glance: the worst groups, what has changed within the hour, how the pipeline is."""
        found = overview(self.index, self._config, self._clock_ms())
        return self._speaker.good(request, "overview returned", overview=found)

    def all_groups(self, request: Request) -> Response:
        """All groups of all clusters, a list a column."""
        index, topic = self.index, request.query.get("topic", ("",))[-1]
        held_of, held = self._all_groups
        if topic or held is None or held_of is not index:
            body = b'{"error":false,"message":"groups returned","groups":%b,"request":%b}' % (
                group_columns(index, topic or None),
                dumps(self._speaker.about(request)),
            )
            held = CachedBody.of(body)
            if not topic:
                self._all_groups = index, held
        return held.answer(request)

    def all_history(self, request: Request) -> Response:
        """The lag of every cluster and how many of its groups had which verdict over time, a list a column."""
        table = clusters_history(self._config.pipeline.data_dir, self._since_ms(request))
        columns = {name: table[name].to_pylist() for name in table.schema.names}
        return self._speaker.good(request, "history returned", history=columns)

    def sinks(self, request: Request) -> Response:
        """Where lag is sent to: what was delivered, what waits, and why."""
        return self._speaker.good(request, "sinks returned", sinks=sinks_answer(self._config))

    def clusters(self, request: Request) -> Response:
        """All clusters."""
        return self._speaker.good(request, "cluster list returned", clusters=sorted(self._config.clusters))

    def cluster(self, request: Request) -> Response:
        """How a cluster is configured."""
        return self._module_answer(request, "cluster", request.names["cluster"])

    def cluster_lag(self, request: Request) -> Response:
        """All groups of a cluster at once."""
        cluster = request.names["cluster"]
        if cluster not in self._config.clusters:
            return self._speaker.error(request, 404, "cluster not found")
        return cluster_lag.answer(self.index, cluster, request.query, self._speaker.about(request))

    def cluster_history(self, request: Request) -> Response:
        """A cluster's lag and how many groups had which verdict over time."""
        cluster = request.names["cluster"]
        if cluster not in self._config.clusters:
            return self._speaker.error(request, 404, "cluster not found")
        rows = cluster_history(self._config.pipeline.data_dir, cluster, self._since_ms(request)).to_pylist()
        points = [
            {
                "time": row["time_ms"],
                "status": Status(row["worst_status"]).name,
                "known": row["is_known"],
                "totallag": row["totallag"],
                "groups": {word: row[f"groups_{word.lower()}"] for word in ("OK", "WARN", "ERR")},
            }
            for row in rows
        ]
        return self._speaker.good(request, "cluster history returned", history=points)

    def _since_ms(self, request: Request) -> int:
        return self._clock_ms() - (number_in(request.query, "hours", HOURS_MOST) or 1) * 3_600_000

    def topics(self, request: Request) -> Response:
        """The topics of a cluster."""
        cluster = request.names["cluster"]
        if cluster not in self._config.clusters:
            return self._speaker.error(request, 404, "cluster not found")
        held = self.index.topics.get(cluster)
        return self._speaker.good(request, "topic list returned", topics=held.names if held else [])

    def topic(self, request: Request) -> Response:
        """The heads of a topic."""
        held = self.index.topics.get(request.names["cluster"])
        place = held.places.get(request.names["topic"]) if held else None
        if held is None or place is None or request.names["cluster"] not in self._config.clusters:
            return self._speaker.error(request, 404, "cluster or topic not found")
        first = int(held.first_row[place])
        heads = self.index.heads[first : first + int(held.partitions[place])]
        return self._speaker.good(
            request, "topic offsets returned", offsets=np.where(heads == UNKNOWN, 0, heads).tolist()
        )

    def topic_consumers(self, request: Request) -> Response:
        """The groups that read a topic."""
        cluster = request.names["cluster"]
        if cluster not in self._config.clusters:
            return self._speaker.error(request, 404, "cluster not found")
        found = self.index.consumers_of(cluster, request.names["topic"])
        return self._speaker.good(request, "consumers of topic returned", consumers=found)

    def topic_detail(self, request: Request) -> Response:
        """A topic's heads, how fast they move, and its consumers with what each lags there."""
        cluster = request.names["cluster"]
        found = topic_detail(self.index, cluster, request.names["topic"]) if cluster in self._config.clusters else None
        if found is None:
            return self._speaker.error(request, 404, "cluster or topic not found")
        return self._speaker.good(request, "topic detail returned", topic=found)

    def consumers(self, request: Request) -> Response:
        """The groups of a cluster."""
        cluster = request.names["cluster"]
        if cluster not in self._config.clusters:
            return self._speaker.error(request, 404, "cluster not found")
        return self._speaker.good(request, "consumer list returned", consumers=list(self.index.groups.get(cluster, {})))

    def consumer(self, request: Request) -> Response:
        """A group's windows."""
        topics = groups.consumer_topics(self.index, request.names["cluster"], request.names["consumer"])
        if topics is None:
            return self._speaker.error(request, 404, "cluster or consumer not found")
        return self._speaker.good(request, "consumer detail returned", topics=topics)

    def status(self, request: Request) -> Response:
        """A group's verdict with the partitions that are not OK."""
        return self._status(request, show_all=False)

    def lag(self, request: Request) -> Response:
        """A group's verdict with all its partitions."""
        return self._status(request, show_all=True)

    def _status(self, request: Request, *, show_all: bool) -> Response:
        cluster, group = request.names["cluster"], request.names["consumer"]
        found = groups.group_status(self.index, cluster, group, show_all=show_all)
        body = b'{"error":false,"message":"consumer status returned","status":%b,"request":{"url":%b,"host":%b}}' % (
            found or groups.not_found(cluster, group),
            dumps(request.path),
            self._host_json,
        )
        return Response(200 if found else 404, body)

    def explain(self, request: Request) -> Response:
        """Why a group has its verdict."""
        topic, partition = request.query.get("topic", (None,))[-1], request.query.get("partition", ("",))[-1]
        if partition and (not partition.isascii() or not partition.isdigit() or len(partition) > 9):
            raise RequestError(f"partition must be a number, not {partition[:20]!r}")
        only = groups.Only(topic, int(partition) if partition else None)
        found = groups.explained(self.index, request.names["cluster"], request.names["consumer"], only)
        if found is None:
            return self._speaker.error(request, 404, "cluster or consumer not found")
        return self._speaker.good(request, "consumer verdict explained", explanation=found)

    def history(self, request: Request) -> Response:
        """A group's lag and verdict over time, a point a trigger, fewer of hours and days that are over."""
        cluster, group = request.names["cluster"], request.names["consumer"]
        rows = group_history(self._config.pipeline.data_dir, cluster, group, self._since_ms(request)).to_pylist()
        if not rows and self.index.number(cluster, group) is None:
            return self._speaker.error(request, 404, "cluster or consumer not found")
        points = [
            {
                "time": row["time_ms"],
                "status": Status(row["status"]).name,
                "worst": Status(row["worst_status"]).name,
                "since": row["since_ms"],
                "totallag": row["totallag"],
                "maxlag": row["maxlag"],
            }
            for row in rows
        ]
        return self._speaker.good(request, "consumer history returned", history=points)

    def delete(self, request: Request) -> Response:
        """Forget a group, or one topic of it, until it commits again."""
        cluster, group, topic = (request.names.get(name) for name in ("cluster", "consumer", "topic"))
        assert cluster is not None
        assert group is not None
        if cluster in self._config.clusters:
            self._requests.ask(RequestKind.DELETE, self._clock_ms(), cluster=cluster, group=group, topic=topic)
            log.info("asked to delete %s%s of %s", group, f" on topic {topic}" if topic else "", cluster)
            self._follower.look()
        return self._speaker.good(request, "consumer group removed")

    def config(self, request: Request) -> Response:
        """The configuration of the server itself."""
        return json_answer(
            {
                "error": False,
                "message": "main config returned",
                "request": self._speaker.about(request),
                **config_answers.main_config(self._config),
            }
        )

    def modules(self, request: Request) -> Response:
        """The sections of one kind."""
        kind = request.path.rsplit("/", 1)[1]
        return json_answer(
            {
                "error": False,
                "message": "module list returned",
                "request": self._speaker.about(request),
                "coordinator": kind,
                "modules": config_answers.module_names(self._config, kind),
            }
        )

    def module(self, request: Request) -> Response:
        """One section."""
        return self._module_answer(request, request.path.split("/")[3], request.names["name"])

    def _module_answer(self, request: Request, kind: str, name: str) -> Response:
        module = config_answers.module_detail(self._config, kind, name)
        if module is None:
            return self._speaker.error(request, 404, f"{kind} module not found")
        return self._speaker.good(request, f"{kind} module detail returned", module=module)

    def log_level(self, request: Request) -> Response:
        """The level of the log."""
        level = _GO_LEVELS.get(logging.getLogger().level, "info")
        return self._speaker.good(request, "log level returned", level=level)

    def set_log_level(self, request: Request) -> Response:
        """Another level for the log, of this server at once and of the pipeline at its next cycle."""
        try:
            wish = json.loads(request.body)
            level = ((None if wish is None else wish.get("level")) or "").lower()
        except (ValueError, AttributeError, RecursionError):
            return self._speaker.error(request, 400, "could not decode message body")
        if level not in _TO_SET or level not in LEVELS:
            return self._speaker.error(request, 404, "unknown log level")
        set_level(level)
        self._requests.ask(RequestKind.LOGLEVEL, self._clock_ms(), level=level)
        return self._speaker.good(request, "set log level")

    def refused(self, path: str, status: int, message: str) -> Response:
        """An error of a request that reached nobody."""
        return self._speaker.refused(path, status, message)
