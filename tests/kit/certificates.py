"""Certificates for servers and clients of tests, by an authority of the test run."""

import datetime as dt
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization


@dataclass(frozen=True)
class Certificate:
    """A certificate with its key, both as PEM; the key is in PKCS #8, the only form that Kafka's brokers read."""

    chain: bytes
    key: bytes
    key_password: str = ""

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write the files of the certificate and of its key, over those of before, and give their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = folder / f"{name}.pem", folder / f"{name}-key.pem"
        certificate.write_bytes(self.chain)
        key.write_bytes(self.key)
        return certificate, key

    def write_keystore(self, file: Path) -> Path:
        """Write the key and the certificate as one file, a PEM keystore of Kafka's."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(self.key + self.chain)
        return file


class Authority:
    """A certificate authority; `file` is its certificate, which clients and brokers trust."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._ca = trustme.CA()
        self.folder = folder
        self.file = folder / "ca.pem"
        self._ca.cert_pem.write_to_path(self.file)

    @cached_property
    def server(self) -> Certificate:
        """The certificate of a server on 127.0.0.1."""
        return self.issue("127.0.0.1", "localhost")

    def issue(
        self, *hosts: str, name: str | None = None, valid_s: float = 86_400.0, key_password: str = ""
    ) -> Certificate:
        """A certificate for hosts, or for a client with a common name; it expires `valid_s` from now."""
        now = dt.datetime.now(dt.UTC)
        leaf = self._ca.issue_cert(
            *(hosts or (f"{name}.client.test",)),
            common_name=name,
            not_before=now - dt.timedelta(days=1),
            not_after=now + dt.timedelta(seconds=valid_s),
            # Java reads PKCS #8 keys of either type.
            key_type=trustme.KeyType.ECDSA,
        )
        return Certificate(
            b"".join(blob.bytes() for blob in leaf.cert_chain_pems),
            _to_pkcs8(leaf.private_key_pem.bytes(), key_password),
            key_password,
        )


def _to_pkcs8(pem: bytes, password: str) -> bytes:
    encryption = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    key = serialization.load_pem_private_key(pem, None)
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
