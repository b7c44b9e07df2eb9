"""Errors of `warren demo`; tests/browser starts and ends the whole demo."""

import socket

import pytest

from warren.demo.run import run_demo
from warren.errors import DemoError


def test_a_port_in_use_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(DemoError, match=rf"--port {port}: the port is in use"):
            run_demo(port=port)
