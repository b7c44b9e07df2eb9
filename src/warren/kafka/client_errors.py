"""Errors of Kafka's clients, librdkafka and Java's, in one sentence: what is wrong, and what to do about it."""

import re
from collections.abc import Sequence

EXPIRED = "the broker's certificate has expired: renew it on the broker"
UNTRUSTED = (
    "the broker's certificate is from an authority that Warren does not trust: set cafile of [tls.NAME] to the "
    "certificate of that authority"
)
WRONG_HOST = (
    "the broker's certificate is not for the host name that Warren connects to: use a host name of the certificate, in "
    "servers and in the broker's advertised.listeners, or renew the certificate"
)
NO_TLS = (
    "the broker does not speak TLS on this port: use the port of a TLS listener, or remove tls from "
    "[client-profile.NAME]"
)
TLS_WANTED = "the broker speaks TLS on this port: set tls in [client-profile.NAME]"
CLOSED = (
    "the broker closes the connection at once, probably because it requires SASL or TLS on this port: check tls and "
    "sasl of [client-profile.NAME], and the port in servers"
)
_CLIENT_CERTIFICATE = (
    "the broker rejects Warren's client certificate, or requires one: check certfile and keyfile of [tls.NAME]"
)
_NO_SASL = (
    "the broker does not expect SASL on this port: use the port of a SASL listener, or remove sasl from "
    "[client-profile.NAME]"
)
_ENDPOINT_FAILED = (
    "the token endpoint gives no token: check token-endpoint-url, client-id, client-secret and token-endpoint-cafile "
    "of [sasl.NAME]"
)
_PATTERNS = [
    (
        r"invalid credentials|Invalid username or password|Authentication failed(?! due to: SSL)",
        "the broker rejects the user name or the password: check username and password of [sasl.NAME]",
    ),
    (r"Request not valid in current SASL state|Unexpected handshake request with client mechanism", _NO_SASL),
    (
        r"Unsupported SASL mechanism|UnsupportedSaslMechanism|not enabled in the server",
        "the broker does not offer this SASL mechanism: check mechanism of [sasl.NAME]",
    ),
    (r"CertificateExpiredException|certificate has expired", EXPIRED),
    (r"No subject alternative (DNS )?names? |No name matching|[Hh]ostname mismatch|IP address mismatch", WRONG_HOST),
    (r"PKIX path building failed|unable to find valid certification path", UNTRUSTED),
    (r"alert:? (bad|unknown|expired|revoked|certificate)", _CLIENT_CERTIFICATE),
    (r"Unsupported or unrecognized SSL message|to a PLAINTEXT broker listener", NO_TLS),
    (
        r"Not authorized to access topics: \[(?P<name>[^\]]*)\]",
        "Warren is not allowed to read the topic {name}: grant Read on it to Warren's user",
    ),
    (
        r"Not authorized to access group: (?P<name>\S+)",
        "Warren is not allowed to use the group {name}: grant Describe on groups to Warren's user",
    ),
    (
        r"ClusterAuthorizationException|Cluster authorization failed",
        "Warren lacks a right on the cluster: grant Describe on the cluster to Warren's user",
    ),
    (r"token endpoint|OAUTHBEARER token|client_credentials|while retrieving token", _ENDPOINT_FAILED),
]
_KNOWN = [(re.compile(pattern, re.DOTALL), sentence) for pattern, sentence in _PATTERNS]
_SERVER = re.compile(r"(?:\w+://)?((?:[\w.-]+|\[[0-9a-fA-F:.]+\]):\d+)/")


def explain(message: str) -> str | None:
    """What an error means, with the broker that it names; None for an error that speaks for itself."""
    for pattern, sentence in _KNOWN:
        if found := pattern.search(message):
            return at_server(sentence.format(name=found.groupdict().get("name") or "(unnamed)"), message)
    return None


def missing_right(operation: str, topics: Sequence[str]) -> str:
    """What Warren's user lacks on these topics."""
    verb = "read" if operation == "Read" else "see"
    others = len(topics) - 1
    more = f" and {others} {'other' if others == 1 else 'others'}" if others else ""
    them = "them" if others else "it"
    return f"Warren is not allowed to {verb} the topic {topics[0]}{more}: grant {operation} on {them} to Warren's user"


def at_server(sentence: str, message: str) -> str:
    """A sentence with the address of the broker that an error of librdkafka names."""
    server = server_in(message)
    return f"{server}: {sentence}" if server else sentence


def server_in(message: str) -> str | None:
    """The address of the broker that an error of librdkafka names."""
    found = _SERVER.search(message)
    return found[1] if found else None
