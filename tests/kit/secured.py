"""A Kafka cluster that is closed: TLS everywhere, four ways to authenticate, and ACLs."""

import secrets
import ssl
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Self

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from tests.kit import rights
from tests.kit.brokers import KafkaCluster
from tests.kit.certificates import Authority, Certificate
from tests.kit.rights import Right
from tests.kit.tokens import AUDIENCE, ISSUER, TokenEndpoint
from tests.kit.warrens import wait_for

SCRAM, PLAIN, MTLS, OAUTH = LISTENERS = ("SCRAM", "PLAIN", "MTLS", "OAUTH")
USERS = {listener: f"warren-{listener.lower()}" for listener in LISTENERS}
"""Who a Warren is on each listener; each of them has rights of its own."""
ADMIN = "admin"
"""May do everything, by SCRAM. So may whoever comes by the open listener, `bootstrap`: the test itself."""
_PROTOCOLS = {SCRAM: "SASL_SSL", PLAIN: "SASL_SSL", MTLS: "SSL", OAUTH: "SASL_SSL"}
_SECURITY = "org.apache.kafka.common.security"
_ITERATIONS = 4096


def new_password() -> str:
    """A password that is hard on JAAS, TOML, URLs, properties files and shells."""
    return f'{secrets.token_hex(6)} "\\=&%$;,/+{secrets.token_hex(6)}'


class SecuredKafka(KafkaCluster):
    """Brokers with an open listener for the test and a closed one for each mechanism (`bootstrap_of(SCRAM)`).

    `passwords` are those of ADMIN and of the users of SCRAM and PLAIN, and the secret of the client of OAUTH.
    Connections by SASL are authenticated anew every `reauthenticate_s`, so that a changed password shows soon.
    """

    def __init__(self, folder: Path, brokers: int = 1, reauthenticate_s: int = 0) -> None:
        self.folder = folder
        self.authority = Authority(folder / "authority")
        self.passwords = {user: new_password() for user in (ADMIN, USERS[SCRAM], USERS[PLAIN], USERS[OAUTH])}
        self.client = self.authority.issue(name=USERS[MTLS])
        """The certificate of the user of MTLS."""
        self.tokens = TokenEndpoint(
            self.authority.server, folder / "tokens", {USERS[OAUTH]: self.passwords[USERS[OAUTH]]}
        )
        self._keystores = 0
        super().__init__(
            brokers,
            _PROTOCOLS,
            {
                **self._tls_config(),
                **self._sasl_config(),
                "connections.max.reauth.ms": str(reauthenticate_s * 1000),
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": f"User:ANONYMOUS;User:{ADMIN}",
            },
            # Brokers fetch keys only from where this property allows it.
            [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.tokens.jwks_url}"],
        )

    def _tls_config(self) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._write_keystore(self.authority.server)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.file),
            # A certificate can be replaced by one for another host.
            "ssl.allow.dn.changes": "true",
            "ssl.allow.san.changes": "true",
            f"listener.name.{MTLS.lower()}.ssl.client.auth": "required",
            f"listener.name.{MTLS.lower()}.ssl.principal.mapping.rules": r"RULE:^.*CN=([^,]+).*$/$1/,DEFAULT",
        }

    def _sasl_config(self) -> dict[str, str]:
        scram, plain, oauth = (f"listener.name.{listener.lower()}" for listener in (SCRAM, PLAIN, OAUTH))
        user, password = USERS[PLAIN], _escaped(self.passwords[USERS[PLAIN]])
        config = {
            f"{scram}.sasl.enabled.mechanisms": "SCRAM-SHA-512,SCRAM-SHA-256",
            f"{scram}.scram-sha-512.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
            f"{scram}.scram-sha-256.sasl.jaas.config": f"{_SECURITY}.scram.ScramLoginModule required;",
            f"{plain}.sasl.enabled.mechanisms": "PLAIN",
            f"{plain}.plain.sasl.jaas.config": f'{_SECURITY}.plain.PlainLoginModule required user_{user}="{password}";',
            f"{oauth}.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{oauth}.oauthbearer.sasl.jaas.config": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required;",
            f"{oauth}.oauthbearer.sasl.server.callback.handler.class": (
                f"{_SECURITY}.oauthbearer.OAuthBearerValidatorCallbackHandler"
            ),
            f"{oauth}.sasl.oauthbearer.jwks.endpoint.url": self.tokens.jwks_url,
            f"{oauth}.sasl.oauthbearer.expected.audience": AUDIENCE,
            f"{oauth}.sasl.oauthbearer.expected.issuer": ISSUER,
        }
        # In a file of properties a backslash escapes too.
        return {name: value.replace("\\", "\\\\") for name, value in config.items()}

    def __enter__(self) -> Self:
        self._parts.enter_context(self.tokens)
        super().__enter__()
        for user in (ADMIN, USERS[SCRAM]):
            self.set_password(user, self.passwords[user])
        return self

    def admin(self) -> AdminClient:
        """A new client that may do everything; one of before a restart may wait long for a controller that is gone."""
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def set_password(self, user: str, password: str) -> None:
        """Give a user of SCRAM this password from now on."""
        mechanisms = (ScramMechanism.SCRAM_SHA_512, ScramMechanism.SCRAM_SHA_256)
        changes = [
            UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, _ITERATIONS), password.encode())
            for mechanism in mechanisms
        ]
        admin = self.admin()
        for change in changes:
            admin.alter_user_scram_credentials([change])[user].result(30)
        self.passwords[user] = password

    def grant(self, user: str, granted: Iterable[Right]) -> None:
        """Give rights to a user."""
        rights.grant(self.admin(), user, granted)

    def revoke(self, user: str, revoked: Iterable[Right]) -> None:
        """Take rights from a user, who must have them."""
        rights.revoke(self.admin(), user, revoked)

    def present(self, listener: str, certificate: Certificate) -> None:
        """Let a listener present another certificate to whoever connects from now on."""
        keystore = str(self._write_keystore(certificate))
        name = f"listener.name.{listener.lower()}.ssl.keystore.location"
        entry = ConfigEntry(name, keystore, incremental_operation=AlterConfigOpType.SET)
        admin = self.admin()
        for i in range(self.brokers):
            broker = ConfigResource(ResourceType.BROKER, str(i), incremental_configs=[entry])
            admin.incremental_alter_configs([broker])[broker].result(30)
        # A broker takes it up a moment later, each of its network threads for itself.
        for address in self.bootstrap_of(listener).split(","):
            wait_for(partial(_is_presented, address, certificate), "every network thread presents it", 60)

    def restart(self) -> None:
        """Kill all brokers and start them again, by which every connection ends."""
        for i in range(self.brokers):
            self.kill(i)
        # Together: none is ready without the others.
        with ThreadPoolExecutor(self.brokers) as pool:
            list(pool.map(self.start, range(self.brokers)))

    def _write_keystore(self, certificate: Certificate) -> Path:
        self._keystores += 1
        return certificate.write_keystore(self.folder / "keystores" / f"{self._keystores}.pem")


def _is_presented(address: str, certificate: Certificate) -> bool:
    """Whether a broker presents a certificate, by all of its network threads."""
    host, port = address.split(":")
    return all(ssl.get_server_certificate((host, int(port))).encode() in certificate.chain for _ in range(12))


def _escaped(text: str) -> str:
    """A value between the quotes of a JAAS configuration."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
