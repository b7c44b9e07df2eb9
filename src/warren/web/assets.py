"""The dashboard's own files, as they were built: held in memory, packed once."""

import gzip
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from warren.web.http import Request, Response, accepts

FOLDER = Path(__file__).parent / "static"
HOME = "index.html"
HTML = "text/html; charset=utf-8"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {
    ".html": HTML,
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_NOT_BUILT = b"""<!doctype html><html lang="en"><title>Warren</title><p>The dashboard has not been built here:
run <code>make dashboard</code> and start again. The <a href="docs">HTTP API</a> works without it."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One file, plain and packed."""

    plain: bytes
    packed: bytes
    content_type: str


@cache
def assets() -> dict[str, Asset]:
    """Every file by its name."""
    paths = sorted(path for path in FOLDER.glob("*") if path.suffix in _TYPES)
    read = {path: path.read_bytes() for path in paths}
    return {path.name: Asset(data, gzip.compress(data), _TYPES[path.suffix]) for path, data in read.items()}


def home(request: Request) -> Response:
    """The page itself, which is asked for anew each time; what it names never changes."""
    found = assets().get(HOME)
    headers = (("Content-Security-Policy", POLICY), ("Cache-Control", "no-cache"), ("Referrer-Policy", "no-referrer"))
    return _answer(request, found, headers) if found else Response(200, _NOT_BUILT, HTML, headers)


def asset(request: Request) -> Response | None:
    """One of the files that the page names; None if there is none of that name."""
    found = assets().get(request.names["asset"])
    if found is None or found.content_type == HTML:
        return None
    kept = ("Cache-Control", "public, max-age=31536000, immutable")
    return _answer(request, found, (kept, ("X-Content-Type-Options", "nosniff")))


def _answer(request: Request, found: Asset, headers: tuple[tuple[str, str], ...]) -> Response:
    if accepts(request.headers.get("accept-encoding", ""), "gzip"):
        more = (("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
        return Response(200, found.packed, found.content_type, (*headers, *more))
    return Response(200, found.plain, found.content_type, (*headers, ("Vary", "Accept-Encoding")))
