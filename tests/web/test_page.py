"""The page that documents the API."""

import re
from pathlib import Path

from tests.kit.servers import server_config, serving


def test_the_page_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    with serving(server_config(tmp_path)) as [client]:
        got = client.ask("/docs")
    assert (got.status, got.type) == (200, "text/html; charset=utf-8")
    assert "<script" in got.text
    assert not re.findall(r"(?i)https?:|(?:src|href|url)\W+//|@import", got.text)
    assert [ref for ref in re.findall(r'(?:href|src)="([^"]*)"', got.text) if ref != "openapi.json"] == []
    assert got.headers["Content-Security-Policy"].startswith("default-src 'none'")
