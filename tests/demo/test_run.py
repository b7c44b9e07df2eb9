"""What keeps `warren demo` from starting is told; that it comes up, and leaves nothing behind, is seen in a browser."""

import socket

import pytest

from warren.demo.run import run_demo
from warren.errors import DemoError


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(DemoError, match=rf"--port {port}: it is taken"):
            run_demo(port=port)
