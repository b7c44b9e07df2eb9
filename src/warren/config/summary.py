"""A configuration in words, as `warren check` prints it."""

from collections.abc import Iterator

from warren.config import Config, Consumer, Notifier
from warren.config.auth import Role
from warren.config.findings import Findings
from warren.config.http import Metrics
from warren.config.kafka import Connection, StormConsumer, ZooKeeperConsumer
from warren.config.sinks import KafkaSink, Sink
from warren.domain.status import Status


def summary(config: Config) -> Iterator[str]:
    """One line per section that matters."""
    for cluster in config.clusters.values():
        yield f"cluster {cluster.name}: {', '.join(cluster.servers)}{_security(config.connection_of(cluster))}"
        for consumer in config.consumers.values():
            if consumer.cluster == cluster.name:
                servers = ", ".join(consumer.servers)
                yield f"  groups{_filter(consumer)}, from {consumer.offsets_topic} of {servers}"
        for section in config.zookeeper_consumers.values():
            if section.cluster == cluster.name:
                what = "spouts of Storm" if isinstance(section, StormConsumer) else "groups"
                servers = ", ".join(section.servers)
                yield f"  {what}{_filter(section)}, from {section.zookeeper_path or '/'} of ZooKeeper at {servers}"
    storage, evaluator, pipeline = config.storage, config.evaluator, config.pipeline
    yield f"windows: {storage.intervals} commits; groups without commits expire after {storage.expire_group} s"
    yield f"verdicts: minimum-complete {evaluator.minimum_complete:g}, allowed-lag {evaluator.allowed_lag}"
    why = " (the shortest offset-refresh)" if config.trigger_s < pipeline.trigger else ""
    cycles = f"a cycle every {config.trigger_s:g} s{why}, which also samples heads"
    yield f"pipeline: {cycles}, on Spark at {pipeline.master}, data in {pipeline.data_dir}"
    for server in config.listeners.values():
        port = f"port {server.port}" if server.port else "a free port"
        yield f"HTTP{'S' if server.tls else ''} on {server.host or 'all interfaces'}, {port}, for {_callers(config)}"
    if config.metrics != Metrics():
        names = f" whose names match {' or '.join(config.metrics.names)}" if config.metrics.names else ""
        yield f"metrics down to each {config.metrics.level}{names}"
    yield from _notifiers(config)
    for sink in config.sinks.values():
        yield f"sink {sink.name}: {sink.class_name}, {', and '.join(_content(sink))}"


def _security(connection: Connection) -> str:
    """How a connection is encrypted and by what Warren authenticates, if it is and does."""
    tls, sasl, iam = connection.tls, connection.sasl, connection.iam
    words = []
    if tls is not None or iam is not None:
        words.append("TLS, not verified" if tls and tls.noverify else "TLS")
    if tls is not None and tls.certfile is not None:
        words.append(f"with the certificate {tls.certfile}")
    if sasl is not None:
        user = sasl.client_id if sasl.effective_mechanism == "OAUTHBEARER" else sasl.username
        words.append(f"as {user} by {sasl.effective_mechanism}")
    if iam is not None:
        words.append(f"by AWS IAM in {iam.region}")
    return f" ({', '.join(words)})" if words else ""


def _notifiers(config: Config) -> Iterator[str]:
    for notifier in config.notifiers.values():
        routes = [route for route in config.routes if notifier.name in route.notifiers]
        groups = f"groups of {len(routes)} routes" if routes else f"groups{_filter(notifier)}"
        yield f"notifier {notifier.name}: {notifier.class_name}, {groups}, from {Status(notifier.threshold).name} on"
    if config.has_leader_election:
        where = f"ZooKeeper at {', '.join(config.zookeeper.servers)}" if config.zookeeper else "Kafka"
        yield f"only one of several Warrens notifies, elected by a lock in {where}"
    if config.has_replicated_incidents:
        cluster = config.incidents.cluster or next(iter(config.clusters))
        yield f"incidents are replicated by the topic {config.incidents.topic} of {cluster}"


def _content(sink: Sink) -> Iterator[str]:
    if not isinstance(sink, KafkaSink) or sink.topic:
        yield f"down to each {sink.detail}, every {sink.interval:g} s"
    if isinstance(sink, KafkaSink) and sink.changes_topic:
        yield f"changes of verdicts to {sink.changes_topic}"


def _callers(config: Config) -> str:
    if config.auth is None:
        return "everyone; silences, acknowledgements and reloads from this machine only"
    if config.auth.open_:
        return "everyone"
    roles = [entry.role for entry in config.auth.entries]
    return f"the entries of {config.auth.file}: {roles.count(Role.READ)} read, {roles.count(Role.ADMIN)} admin"


def _filter(section: Consumer | ZooKeeperConsumer | Notifier) -> str:
    allowed = f" that match {section.group_allowlist}" if section.group_allowlist else ""
    denied = f" but not {section.group_denylist}" if section.group_denylist else ""
    return allowed + denied


def verdict(findings: Findings) -> str:
    """The number of mistakes, warnings and notes."""
    warnings = findings.warnings + findings.risks
    counts = {"mistake": len(findings.mistakes), "warning": len(warnings), "note": len(findings.notes)}
    counted = [f"{count} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items() if count]
    return f"{findings.file}: {', '.join(counted) or 'no mistake'}"
