"""Options of Kafka's clients: those that a profile may not pass on, because Warren sets them, and those of Java."""

_SERVERS = "it is set by the key servers of the cluster or consumer"
_PROTOCOL = "it is set by the keys tls, sasl and iam of the profile"
_TLS = "it is set by the keys of [tls.NAME]"
_SASL = "it is set by the keys of [sasl.NAME] or [iam.NAME]"
_OWN = "Warren sets it, and works with no other value"
_BOTH = {
    "bootstrap.servers": _SERVERS,
    "client.id": "it is set by the key client-id of the profile",
    "security.protocol": _PROTOCOL,
    "sasl.mechanism": _SASL,
    "sasl.oauthbearer.token.endpoint.url": _SASL,
    **dict.fromkeys(
        ("group.id", "group.instance.id", "isolation.level", "enable.auto.commit", "auto.offset.reset"), _OWN
    ),
    **dict.fromkeys(("transactional.id", "enable.idempotence"), _OWN),
}
_LIBRDKAFKA = {
    "metadata.broker.list": _SERVERS,
    "sasl.mechanisms": _SASL,
    **dict.fromkeys(("sasl.username", "sasl.password", "sasl.oauthbearer.method"), _SASL),
    **dict.fromkeys(("sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret"), _SASL),
    **dict.fromkeys(("ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem"), _TLS),
    **dict.fromkeys(("ssl.key.location", "ssl.key.pem", "ssl.key.password"), _TLS),
    "enable.ssl.certificate.verification": _TLS,
    **dict.fromkeys(("enable.partition.eof", "enable.auto.offset.store", "session.timeout.ms"), _OWN),
    **dict.fromkeys(("heartbeat.interval.ms", "partition.assignment.strategy", "log_level"), _OWN),
}
_JAVA = {
    **dict.fromkeys(("sasl.jaas.config", "sasl.login.callback.handler.class"), _SASL),
    "sasl.client.callback.handler.class": _SASL,
    **dict.fromkeys(("ssl.truststore.type", "ssl.truststore.certificates", "ssl.truststore.location"), _TLS),
    **dict.fromkeys(("ssl.keystore.type", "ssl.keystore.key", "ssl.keystore.certificate.chain"), _TLS),
    **dict.fromkeys(("ssl.keystore.location", "ssl.keystore.password", "ssl.key.password"), _TLS),
    "ssl.truststore.password": _TLS,
    **dict.fromkeys(("key.deserializer", "value.deserializer", "key.serializer", "value.serializer"), _OWN),
    "interceptor.classes": "Spark's Kafka source refuses it",
}
_JAVA_NAMES = """
allow.auto.create.topics auto.commit.interval.ms auto.include.jmx.reporter auto.offset.reset bootstrap.controllers
bootstrap.servers check.crcs client.dns.lookup client.id client.rack connections.max.idle.ms default.api.timeout.ms
enable.auto.commit enable.metrics.push exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes
group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms interceptor.classes
isolation.level key.deserializer max.partition.fetch.bytes max.poll.interval.ms max.poll.records metadata.max.age.ms
metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
partition.assignment.strategy receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms
retries retry.backoff.max.ms retry.backoff.ms sasl.client.callback.handler.class sasl.jaas.config
sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism sasl.oauthbearer.clock.skew.seconds
sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer sasl.oauthbearer.header.urlencode
sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope.claim.name
sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url security.protocol security.providers
send.buffer.bytes session.timeout.ms socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class
ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider ssl.secure.random.implementation
ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location ssl.truststore.password
ssl.truststore.type value.deserializer
"""
JAVA_OPTIONS = frozenset(_JAVA_NAMES.split())
"""The options of the Java consumer and admin client of Kafka 3.9, which Spark's connector has."""


def reserved_option(name: str, client: str) -> str | None:
    """Why an option cannot be passed on to a client ("librdkafka" or "java"); None if it can."""
    return _BOTH.get(name) or (_LIBRDKAFKA if client == "librdkafka" else _JAVA).get(name)
