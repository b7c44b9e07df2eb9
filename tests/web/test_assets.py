"""The dashboard's files over HTTP: the page, the files it names, and nothing else."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.servers import Client, new_api, server_config, serving
from warren.config.auth import Auth, parse_entries
from warren.errors import RequestError
from warren.web import assets
from warren.web.assets import CONTENT_SECURITY_POLICY, FOLDER
from warren.web.http import Request

TYPES = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
ZIPPED = {"Accept-Encoding": "gzip, br"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serving(server_config(tmp_path_factory.mktemp("assets"))) as [client]:
        yield client


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A stranger to a server that wants to know who asks."""
    entries, _ = parse_entries(b"read token spoon")
    config = server_config(tmp_path_factory.mktemp("guarded"), auth=Auth(Path("auth"), entries))
    with serving(config) as [client]:
        yield client


def named(page: str) -> list[str]:
    """The files that the page names, with where they are."""
    return re.findall(r'(?:src|href)="(assets/[^"]+)"', page)


def test_the_page_is_revalidated_and_loads_only_its_own_files(client: Client) -> None:
    got = client.ask("/")
    assert (got.status, got.type) == (200, "text/html; charset=utf-8")
    assert got.body == (FOLDER / "index.html").read_bytes()
    assert (got.headers["Content-Security-Policy"], got.headers["Cache-Control"]) == (
        CONTENT_SECURITY_POLICY,
        "no-cache",
    )
    assert got.headers["Referrer-Policy"] == "no-referrer"
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on\w+=|https?://", got.text), "the policy forbids it"


def test_files_named_by_the_page_exist_and_are_immutable(client: Client) -> None:
    names = named(client.ask("/").text)
    assert {name.rpartition(".")[2] for name in names} == set(TYPES)
    for name in names:
        got = client.ask(f"/{name}")
        assert (got.status, got.type) == (200, TYPES[name.rpartition(".")[2]])
        assert got.body == (FOLDER / Path(name).name).read_bytes()
        assert got.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert (got.headers["X-Content-Type-Options"], got.headers["Vary"]) == ("nosniff", "Accept-Encoding")
        assert got.headers["Content-Encoding"] is None


@pytest.mark.parametrize(
    "path",
    [
        "nothing.js",
        "index.html",
        "app.js",
        "..",
        "%2e%2e",
        "..%2Findex.html",
        "..%2Fassets.py",
        "..%2F..%2F..%2F..%2F..%2Fetc%2Fpasswd",
        "%2Fetc%2Fpasswd",
        "..%5Cassets.py",
        "../assets.py",
        "../static/icon.svg",
        "icon.svg%00",
        "icon.svg%2F",
        "ICON.SVG",
        ".gitignore",
        "",
    ],
)
def test_other_files_are_not_found(client: Client, path: str) -> None:
    got = client.ask(f"/assets/{path}")
    assert (got.status, got.json["error"]) == (404, True)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_files_are_read_only(client: Client, method: str) -> None:
    assert [client.ask(path, method).status for path in ("/", "/assets/icon.svg")] == [405, 405]


def test_the_page_needs_authentication(guarded: Client) -> None:
    for path in ("/", "/assets/icon.svg"):
        got = guarded.ask(path)
        assert (got.status, got.type) == (401, "application/json")
        assert 'Basic realm="warren"' in got.headers.get_all("WWW-Authenticate", []), "a browser asks for a name"
        assert guarded.known_as("Bearer spoon").ask(path).status == 200


def test_files_are_compressed_for_clients_that_accept_gzip(guarded: Client) -> None:
    known = guarded.known_as("Bearer spoon")
    for path in ("/", *(f"/{name}" for name in named(known.ask("/").text))):
        plain, packed = known.ask(path), known.ask(path, headers=ZIPPED)
        assert (plain.headers["Content-Encoding"], packed.headers["Content-Encoding"]) == (None, "gzip")
        assert gzip.decompress(packed.body) == plain.body
        assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Encoding"
        for name in ("Content-Type", "Cache-Control", "Content-Security-Policy"):
            assert plain.headers[name] == packed.headers[name]
        assert known.ask(path, headers={"Accept-Encoding": "gzip;q=0"}).body == plain.body


def test_without_its_files_the_page_says_how_to_build_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "files", dict)
    api = new_api(server_config(tmp_path))
    answer = assets.home(api, Request("/", {}))
    assert (answer.status, answer.content_type) == (200, "text/html; charset=utf-8")
    assert b"make dashboard" in bytes(answer.body)  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="file not found"):
        assets.asset(api, Request("/assets/icon.svg", {"asset": "icon.svg"}))


def test_the_page_about_the_api_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    with serving(server_config(tmp_path)) as [client]:
        got = client.ask("/docs")
    assert (got.status, got.type) == (200, "text/html; charset=utf-8")
    assert "<script" in got.text
    assert not re.findall(r"(?i)https?:|(?:src|href|url)\W+//|@import", got.text)
    assert [ref for ref in re.findall(r'(?:href|src)="([^"]*)"', got.text) if ref != "openapi.json"] == []
    assert got.headers["Content-Security-Policy"].startswith("default-src 'none'")
