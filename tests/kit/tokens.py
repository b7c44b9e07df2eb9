"""A token endpoint of OAuth 2.0: it gives signed tokens for client credentials, and its keys as JWKS."""

import base64
import json
import ssl
import threading
import time
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, unquote_plus

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.kit.certificates import Certificate

ISSUER = "https://tokens.test"
AUDIENCE = "kafka"
SCOPE = "kafka"
_KEY_ID = "first"


class TokenEndpoint:
    """Serves `token_url` over HTTPS, and over HTTP `jwks_url`, by which brokers check what it has signed.

    `clients` are the ids and secrets of those who get tokens; the id becomes the subject. Both can be changed while it
    runs, as can `valid_s`, how long tokens are valid.
    """

    def __init__(self, certificate: Certificate, folder: Path, clients: Mapping[str, str], valid_s: float = 60) -> None:
        self.clients = dict(clients)
        self.valid_s = valid_s
        self.issued: list[str] = []
        """Every token that was given out."""
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*certificate.write(folder, "tokens"), password=certificate.key_password or None)
        self._secured = _Server(self)
        self._secured.socket = context.wrap_socket(self._secured.socket, server_side=True)
        self._open = _Server(self)

    @property
    def token_url(self) -> str:
        """Where clients ask for a token."""
        return f"https://127.0.0.1:{self._secured.server_port}/token"

    @property
    def jwks_url(self) -> str:
        """Where brokers find the keys."""
        return f"http://127.0.0.1:{self._open.server_port}/jwks"

    def __enter__(self) -> Self:
        for server in (self._secured, self._open):
            threading.Thread(target=server.serve_forever, name="token endpoint", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in (self._secured, self._open):
            server.shutdown()
            server.server_close()

    def jwks(self) -> dict[str, Any]:
        """The public key, as brokers read it."""
        numbers = self._key.public_key().public_numbers()
        exponent, modulus = (_base64(n.to_bytes((n.bit_length() + 7) // 8)) for n in (numbers.e, numbers.n))
        return {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID, "e": exponent, "n": modulus}]}

    def token(self, subject: str, scope: str) -> str:
        """A signed token."""
        now = int(time.time())
        header = {"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": subject,
            "scope": scope,
            "jti": uuid.uuid4().hex,
            "iat": now,
            "exp": int(now + self.valid_s),
        }
        signed = ".".join(_base64(json.dumps(part).encode()) for part in (header, claims))
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        token = f"{signed}.{_base64(signature)}"
        self.issued.append(token)
        return token


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, endpoint: TokenEndpoint) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.endpoint = endpoint

    def handle_error(self, *_: object) -> None:
        """A client that hangs up, or does not trust the certificate, is no error of the test."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """The keys."""
        self._answer(200, self.server.endpoint.jwks())

    def do_POST(self) -> None:
        """A token, for whoever has the right secret."""
        size = int(self.headers.get("Content-Length", 0))
        form = {name: values[0] for name, values in parse_qs(self.rfile.read(size).decode()).items()}
        client, secret = self._credentials(form)
        if form.get("grant_type") != "client_credentials":
            self._answer(400, {"error": "unsupported_grant_type"})
        elif not secret or self.server.endpoint.clients.get(client) != secret:
            self._answer(401, {"error": "invalid_client", "error_description": "unknown client or wrong secret"})
        else:
            token = self.server.endpoint.token(client, form.get("scope", SCOPE))
            valid_s = int(self.server.endpoint.valid_s)
            self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": valid_s})

    def _credentials(self, form: Mapping[str, str]) -> tuple[str, str]:
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "basic":
            return form.get("client_id", ""), form.get("client_secret", "")
        client, _, secret = base64.b64decode(value).decode().partition(":")
        endpoint = self.server.endpoint
        # RFC 6749 wants both URL-encoded; Java's client does so only on request, librdkafka never.
        return (
            (client, secret) if endpoint.clients.get(client) == secret else (unquote_plus(client), unquote_plus(secret))
        )

    def _answer(self, status: int, content: Mapping[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: the log of a test is not the place."""


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
