"""The sections of a burrow.toml that watches secured listeners."""

from collections.abc import Mapping
from pathlib import Path

from tests.kit.secured import MTLS, OAUTH, PLAIN, SCRAM, USERS, SecuredKafka
from tests.kit.tokens import SCOPE
from tests.kit.warrens import Sections, sections_for

_MECHANISMS = {SCRAM: "SCRAM-SHA-512", PLAIN: "PLAIN", OAUTH: "OAUTHBEARER"}


def secured_sections(
    kafka: SecuredKafka,
    clusters: Mapping[str, str],
    *,
    trigger: float = 1.0,
    passwords: Mapping[str, str] | None = None,
) -> Sections:
    """The sections for these clusters (name and listener), each with a profile of the name of its listener.

    `passwords` has what is written in place of the password of a listener's user: `file:…`, `${…}`.
    """
    addresses = {name: kafka.bootstrap_of(listener) for name, listener in clusters.items()}
    sections = sections_for(addresses, trigger=trigger)
    for name, listener in clusters.items():
        profile = listener.lower()
        sections[f"cluster.{name}"]["client-profile"] = profile
        sections[f"consumer.{name}"]["client-profile"] = profile
        sections |= profile_sections(kafka, listener, (passwords or {}).get(listener))
    return sections


def profile_sections(kafka: SecuredKafka, listener: str, password: str | None = None) -> Sections:
    """The profile for a listener, of the listener's name in lower case, with all that it names."""
    name, user = listener.lower(), USERS[listener]
    profile = {"client-id": "warren", "tls": name}
    tls = {"cafile": str(kafka.authority.file)}
    if listener == MTLS:
        certificate, key = client_files(kafka)
        return {
            f"client-profile.{name}": profile,
            f"tls.{name}": {**tls, "certfile": str(certificate), "keyfile": str(key)},
        }
    secret = kafka.passwords[user] if password is None else password
    sasl: dict[str, str | bool] = {"mechanism": _MECHANISMS[listener]}
    if listener == OAUTH:
        sasl |= {"client-id": user, "client-secret": secret, "scope": SCOPE}
        sasl |= {"token-endpoint-url": kafka.tokens.token_url, "token-endpoint-cafile": str(kafka.authority.file)}
    else:
        sasl |= {"username": user, "password": secret, "handshake-first": True}
    return {f"client-profile.{name}": {**profile, "sasl": name}, f"tls.{name}": tls, f"sasl.{name}": sasl}


def client_files(kafka: SecuredKafka) -> tuple[Path, Path]:
    """The files of the certificate and the key of the user of MTLS."""
    return kafka.client.write(kafka.folder / "client", USERS[MTLS])
