"""What the newest error of librdkafka means, where a connection to the broker has to tell."""

import socket
import threading

import pytest

from warren.kafka.error_callback import ErrorCallback


@pytest.mark.parametrize(
    "error",
    [
        "ssl://{server}/bootstrap: Disconnected: SSL connection closed by peer (after 0ms in state SSL_HANDSHAKE)",
        "ssl://{server}/bootstrap: Send failed: Broken pipe: tls_retry_write_records failure (after 0ms in state UP)",
        "1/1 brokers are down",
    ],
)
def test_a_broker_that_closes_a_handshake_does_not_speak_tls(error: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def close_all() -> None:
            for _ in range(2):
                connection, _address = listener.accept()
                connection.recv(1)
                connection.close()

        threading.Thread(target=close_all, daemon=True).start()
        server = "{}:{}".format(*listener.getsockname())
        callback = ErrorCallback({"bootstrap.servers": server, "security.protocol": "SSL"})
        callback.newest = error.format(server=server)
        assert (callback.explained() or "").startswith(f"{server}: the broker does not speak TLS on this port")


def test_a_connection_that_lasted_ended_for_another_reason() -> None:
    callback = ErrorCallback({"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SSL"})
    callback.newest = "ssl://127.0.0.1:1/0: Disconnected (after 61234ms in state UP)"
    assert callback.explained() is None
