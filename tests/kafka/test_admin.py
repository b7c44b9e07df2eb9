"""Clients that follow their options."""

from pathlib import Path

import pytest

from warren.config.kafka import Connection
from warren.config.secrets import Secret
from warren.config.security import Sasl
from warren.errors import ClusterError
from warren.kafka.admin import AdminOf


def test_a_connection_has_one_client_until_a_file_of_its_options_changes(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("first")
    sasl = Sasl("me", Secret(file=file), mechanism="SCRAM-SHA-256")
    client = AdminOf(Connection(("127.0.0.1:1",), sasl=sasl))
    first = client.admin()
    assert client.admin() is first
    file.write_text("second")
    second = client.admin()
    assert second is not first
    assert client.admin() is second
    file.unlink()
    with pytest.raises(ClusterError, match="cannot be read"):
        client.admin()
