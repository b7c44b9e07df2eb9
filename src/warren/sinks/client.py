"""The HTTP client of sinks: one of several servers at a time, the next one when it does not answer."""

import logging
import ssl
from collections.abc import Mapping

import httpx

from warren.config.sinks import HttpSink
from warren.errors import RefusedError

# It would log every request.
logging.getLogger("httpx").setLevel(logging.WARNING)

TRY_AGAIN = frozenset({401, 403, 408, 425, 429})
"""Refusals that may end: of the moment, or when somebody mends an account."""


class SinkClient:
    """Asks the servers of a sink."""

    def __init__(self, sink: HttpSink, headers: Mapping[str, str]) -> None:
        self._urls = [url.rstrip("/") for url in sink.urls]
        self._headers = {**headers, **sink.headers}
        auth = httpx.BasicAuth(sink.username, sink.password or "") if sink.username else None
        self._client = httpx.Client(verify=_tls(sink), timeout=sink.timeout, auth=auth)

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None, **query: str | None
    ) -> httpx.Response:
        """An answer that is good, or a 404; RefusedError for what will never be taken, ConnectionError for the rest."""
        wanted = {name: value for name, value in query.items() if value is not None}
        try:
            answer = self._client.request(
                method,
                f"{self._urls[0]}{path}",
                content=body,
                params=wanted,
                headers={**self._headers, **(headers or {})},
            )
        except httpx.TransportError as error:
            # The next one is asked next time.
            self._urls.append(self._urls.pop(0))
            raise ConnectionError(f"{type(error).__name__}: {error}") from None
        if answer.is_success or answer.status_code == httpx.codes.NOT_FOUND:
            return answer
        said = f"the server answered {answer.status_code}: {answer.text[:200]}"
        if answer.is_client_error and answer.status_code not in TRY_AGAIN:
            raise RefusedError(said)
        self._urls.append(self._urls.pop(0))
        raise ConnectionError(said)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()


def _tls(sink: HttpSink) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=None if sink.tls_ca is None else str(sink.tls_ca))
    if sink.tls_cert is not None:
        context.load_cert_chain(str(sink.tls_cert), None if sink.tls_key is None else str(sink.tls_key))
    if sink.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
