"""Errors of Kafka's clients, librdkafka and Java's, in one sentence: what is wrong, and what to do about it."""

import re
from collections.abc import Sequence

EXPIRED = "the broker's certificate has expired: renew it on the broker"
UNTRUSTED = (
    "the broker's certificate is of no authority that is trusted: set cafile of [tls.NAME] to the certificate of the "
    "authority that issued it"
)
WRONG_HOST = (
    "the broker's certificate is not for the host by which it is reached: use a host name that is in the certificate "
    "in servers and in the broker's advertised.listeners, or renew the certificate"
)
NO_TLS = "the broker does not speak TLS on this port: use the port of a TLS listener, or no tls in the client profile"
TLS_WANTED = "the broker speaks TLS on this port: set tls in the client profile"
CLOSED = (
    "the broker closes the connection at once: it asks for TLS or SASL, or for another kind of them; check tls, sasl "
    "and servers of the client profile"
)
_CLIENT_CERTIFICATE = (
    "the broker does not accept Warren's own certificate, or asks for one: check certfile and keyfile of [tls.NAME]"
)
_NO_SASL = (
    "the broker does not ask for SASL on this port: use the port of a SASL listener, or no sasl in the client profile"
)
_ENDPOINT_FAILED = (
    "no token could be had from the token endpoint: check token-endpoint-url, client-id, client-secret and "
    "token-endpoint-cafile of [sasl.NAME]"
)
_PATTERNS = [
    (
        r"invalid credentials|Invalid username or password|Authentication failed(?! due to: SSL)",
        "the broker refuses the user name or the password: check username and password of [sasl.NAME]",
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
        "Warren may not read the topic {name}: grant Read on it to Warren's user",
    ),
    (
        r"Not authorized to access group: (?P<name>\S+)",
        "Warren may not use the group {name}: grant Describe on groups to Warren's user",
    ),
    (
        r"ClusterAuthorizationException|Cluster authorization failed",
        "Warren's user may not ask this of the cluster: grant Describe on the cluster",
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
    return f"Warren may not {verb} the topic {topics[0]}{more}: grant {operation} on {them} to Warren's user"


def at_server(sentence: str, message: str) -> str:
    """A sentence with the address of the broker that an error of librdkafka names."""
    server = server_in(message)
    return f"{server}: {sentence}" if server else sentence


def server_in(message: str) -> str | None:
    """The address of the broker that an error of librdkafka names."""
    found = _SERVER.search(message)
    return found[1] if found else None
