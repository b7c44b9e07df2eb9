"""The newest error that a client of librdkafka reports: its calls only time out, whatever the reason."""

import re
from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError

from warren.kafka.broker_versions import ask_versions
from warren.kafka.client_errors import CLOSED, explain, server_in
from warren.kafka.tls_probe import find_tls_error

_PROBED = re.compile(
    r"certificate verify failed|brokers are down|in state SSL_HANDSHAKE|after \d{1,3}ms in state (UP|APIVERSION_QUERY)"
)
"""Errors whose reason a connection to the broker tells; a connection that ends at once was closed for a reason."""


class ErrorCallback:
    """The `error_cb` of a client with these options, or of several; a poll of the client calls it."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.forget(options)

    def forget(self, options: Mapping[str, Any]) -> None:
        """Begin anew, for a new client with these options."""
        self.newest = ""
        self._options = options

    def __call__(self, error: KafkaError) -> None:
        """Keep an error, unless it only sums up those before it, which name the broker and the reason."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN or not self.newest:
            self.newest = error.str()

    def explained(self) -> str | None:
        """What the newest error means, if it is about TLS, credentials, rights or the broker's version."""
        if sentence := explain(self.newest):
            return sentence
        # That some certificate is wrong, or that the broker closes the connection, is all that librdkafka tells.
        if _PROBED.search(self.newest):
            server = server_in(self.newest) or str(self._options["bootstrap.servers"]).partition(",")[0]
            found = find_tls_error(self._options, server)
            versions = ask_versions(self._options, [server]) if found == CLOSED else None
            if versions is not None and versions.too_old:
                return versions.too_old
            return f"{server}: {found}" if found else None
        return None
