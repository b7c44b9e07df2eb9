"""`[tls.NAME]`, `[sasl.NAME]`, `[iam.NAME]`: certificates and credentials."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from warren.config import values as v
from warren.config.pem import certificates_in, is_key_of, private_key_in
from warren.config.secrets import revealed
from warren.config.section import RawSection, Sections
from warren.errors import SecretError

_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
# Burrow takes no mechanism, written as "", for PLAIN.
_MECHANISM = v.Check(
    f"one of {', '.join(_MECHANISMS)}", str, lambda value: value.upper() in ("", *_MECHANISMS), str.upper
)
_OAUTH_KEYS = ("token-endpoint-url", "client-id", "client-secret")


@dataclass(frozen=True)
class Tls:
    """`[tls.NAME]`: certificates."""

    certfile: v.InputFile = None
    keyfile: v.InputFile = None
    cafile: v.InputFile = None
    noverify: v.Switch = False
    keypassword: v.Password = None
    name: str = ""

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """Each file has what its key says, and the private key is that of the certificate."""
        if section.get("noverify"):
            section.warning(v.NOT_VERIFIED, "noverify")
        tls = Tls(**section.values)
        pem: dict[str, str] = {}
        reading = {"cafile": tls.ca_certificates, "certfile": tls.certificates, "keyfile": tls.private_key}
        for attribute, read in reading.items():
            # A file that cannot be read at all has been reported.
            if getattr(tls, attribute) is not None and getattr(tls, attribute).is_file():
                try:
                    pem[attribute] = read()
                except SecretError as error:
                    section.refuse(attribute, str(error).partition(": ")[2])
        if {"certfile", "keyfile"} <= pem.keys() and not is_key_of(pem["keyfile"], pem["certfile"]):
            section.refuse("keyfile", "is not the key of the certificate in certfile")

    def ca_certificates(self) -> str:
        """The certificates of `cafile`, which other certificates are verified by; SecretError if there are none."""
        return _pem(self.cafile, certificates_in)

    def certificates(self) -> str:
        """The own certificate, followed by those of its issuers."""
        return _pem(self.certfile, certificates_in)

    def private_key(self) -> str:
        """The key of the own certificate, in PKCS#8 and without a password."""
        return _pem(self.keyfile, lambda content: private_key_in(content, revealed(self.keypassword)))


def _pem(file: Path | None, select: Callable[[bytes], str]) -> str:
    if file is None:
        return ""
    try:
        return select(file.read_bytes())
    except OSError as error:
        raise SecretError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SecretError(f"{file}: {error}") from None


@dataclass(frozen=True)
class Sasl:
    """`[sasl.NAME]`: credentials for brokers, or for the token endpoint that OAUTHBEARER asks first."""

    username: v.OptionalText = None
    password: v.Password = None
    handshake_first: Annotated[
        bool, replace(v.SWITCH, no_effect="clients always agree on the mechanism first")
    ] = False  # fmt: skip
    mechanism: Annotated[str | None, _MECHANISM] = None
    client_id: v.OptionalText = None
    client_secret: v.Password = None
    token_endpoint_url: Annotated[str | None, v.text("a URL", r"https?://\S+")] = None
    token_endpoint_cafile: v.InputFile = None
    scope: v.OptionalText = None
    name: str = ""

    @property
    def effective_mechanism(self) -> str:
        """The mechanism; as in Burrow, none is PLAIN."""
        return self.mechanism or "PLAIN"

    def token_endpoint_certificates(self) -> str:
        """The certificates that the token endpoint is verified by, "" for those of the system."""
        return _pem(self.token_endpoint_cafile, certificates_in)

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """Every key that its mechanism needs is there."""
        mechanism = section.get("mechanism") or "PLAIN"
        required = _OAUTH_KEYS if mechanism == "OAUTHBEARER" else ("username", "password")
        section.require(*required, because=f"the mechanism {mechanism} needs it")
        file = section.values.get("token_endpoint_cafile")
        if file is not None and file.is_file():
            try:
                certificates_in(file.read_bytes())
            except ValueError as error:
                section.refuse("token_endpoint_cafile", str(error))


@dataclass(frozen=True)
class Iam:
    """`[iam.NAME]`: credentials of AWS for brokers of Amazon MSK."""

    region: v.OptionalText = None
    role_arn: v.OptionalText = None
    profile: v.OptionalText = None
    name: str = ""

    @staticmethod
    def check(section: RawSection, sections: Sections) -> None:
        """The region is there: each request is signed for it."""
        section.require("region", because="must be a region of AWS such as eu-west-1")
        if section.get("role_arn") and section.get("profile"):
            section.warning("has no effect: role-arn is used", "profile")
