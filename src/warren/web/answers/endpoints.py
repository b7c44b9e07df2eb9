"""The answer of every JSON endpoint: its fields beside `error`, `message` and `request`."""

from collections.abc import Mapping
from typing import Any

from warren.snapshot.status import GroupStatus
from warren.web.answers.clusters import (
    ClusterHistoryColumns,
    ClusterHistoryPoint,
    ClusterSummary,
    LeadershipSummary,
    Overview,
    SinkSummary,
)
from warren.web.answers.config import GENERAL, HTTP_SERVER, LOGGING, MODULES, ZOOKEEPER
from warren.web.answers.groups import GroupColumns, GroupExplanation, GroupHistoryPoint, PartitionWindow, TopicDetail
from warren.web.answers.incidents import IncidentDetail, IncidentSummary, NotifierSummary, SilenceSummary

_CLUSTER = "/v3/kafka/{cluster}"
_CONSUMER = f"{_CLUSTER}/consumer/{{consumer}}"
_ACKNOWLEDGE = "/v3/incidents/{incident}/acknowledge"

FIELDS: Mapping[str, Mapping[str, Any]] = {
    "GET /v3/overview": {"overview": Overview},
    "GET /v3/groups": {"groups": GroupColumns},
    "GET /v3/history": {"history": ClusterHistoryColumns},
    "GET /v3/incidents": {"incidents": list[IncidentSummary]},
    "GET /v3/incidents/{incident}": {"incident": IncidentDetail},
    f"POST {_ACKNOWLEDGE}": {"incident": IncidentDetail},
    f"DELETE {_ACKNOWLEDGE}": {"incident": IncidentDetail},
    "GET /v3/silences": {"silences": list[SilenceSummary]},
    "POST /v3/silences": {"silence": SilenceSummary},
    "DELETE /v3/silences/{silence}": {"silence": SilenceSummary},
    "GET /v3/notifiers": {"duty": LeadershipSummary, "notifiers": list[NotifierSummary]},
    "GET /v3/sinks": {"sinks": list[SinkSummary]},
    "GET /v3/kafka": {"clusters": list[str]},
    f"GET {_CLUSTER}": {"module": MODULES["cluster"]},
    f"GET {_CLUSTER}/lag": {"cluster": ClusterSummary, "total": int, "next": str | None, "groups": list[GroupStatus]},
    f"GET {_CLUSTER}/history": {"history": list[ClusterHistoryPoint]},
    f"GET {_CLUSTER}/topic": {"topics": list[str]},
    f"GET {_CLUSTER}/topic/{{topic}}": {"offsets": list[int]},
    f"GET {_CLUSTER}/topic/{{topic}}/consumers": {"consumers": list[str]},
    f"GET {_CLUSTER}/topic/{{topic}}/detail": {"topic": TopicDetail},
    f"GET {_CLUSTER}/consumer": {"consumers": list[str]},
    f"GET {_CONSUMER}": {"topics": dict[str, list[PartitionWindow]]},
    f"DELETE {_CONSUMER}": {},
    f"GET {_CONSUMER}/status": {"status": GroupStatus},
    f"GET {_CONSUMER}/lag": {"status": GroupStatus},
    f"GET {_CONSUMER}/explain": {"explanation": GroupExplanation},
    f"GET {_CONSUMER}/history": {"history": list[GroupHistoryPoint]},
    f"DELETE {_CONSUMER}/topic/{{topic}}": {},
    "GET /v3/config": {
        "general": GENERAL,
        "logging": LOGGING,
        "zookeeper": ZOOKEEPER,
        "httpserver": dict[str, HTTP_SERVER],  # type: ignore[valid-type]
    },
    **{f"GET /v3/config/{kind}": {"coordinator": str, "modules": list[str]} for kind in MODULES},
    **{f"GET /v3/config/{kind}/{{name}}": {"module": module} for kind, module in MODULES.items()},
    "GET /v3/admin/loglevel": {"level": str},
    "POST /v3/admin/loglevel": {},
}
