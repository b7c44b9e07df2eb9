"""Web pages: the dashboard's files as they were built, kept in memory and compressed once; the page about the API."""

from functools import cache
from pathlib import Path

from warren.errors import RequestError
from warren.web.api import Api
from warren.web.http import HTML, CachedBody, Request, Response

FOLDER = Path(__file__).parent / "static"
HOME = "index.html"
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_DOCS = Path(__file__).parent / "docs.html"
"""The page at /docs, made by the browser from the OpenAPI description; it loads nothing from other hosts."""
_DOCS_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {
    ".html": HTML,
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_NOT_BUILT = b"""<!doctype html><html lang="en"><title>Warren</title><p>The dashboard has not been built here:
run <code>make dashboard</code> and start again. The <a href="docs">HTTP API</a> works without it."""


@cache
def files() -> dict[str, CachedBody]:
    """Every file by its name."""
    paths = [path for path in FOLDER.glob("*") if path.suffix in _TYPES]
    return {path.name: CachedBody.of(path.read_bytes(), level=9) for path in paths}


def home(_api: Api, request: Request) -> Response:
    """Get the dashboard's page, which browsers check for changes each time."""
    headers = (
        ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
        ("Cache-Control", "no-cache"),
        ("Referrer-Policy", "no-referrer"),
    )
    page = files().get(HOME)
    return page.response(request, HTML, headers) if page else Response(200, _NOT_BUILT, HTML, headers)


def asset(_api: Api, request: Request) -> Response:
    """Get a script, style sheet or image of the dashboard; its name changes with its content."""
    name = request.params["asset"]
    if name == HOME or name not in files():
        raise RequestError("file not found", 404)
    headers = (("Cache-Control", "public, max-age=31536000, immutable"), ("X-Content-Type-Options", "nosniff"))
    return files()[name].response(request, _TYPES[Path(name).suffix], headers)


def docs(_api: Api, _request: Request) -> Response:
    """Get a page to browse this API with."""
    return Response(200, _DOCS.read_bytes(), HTML, (("Content-Security-Policy", _DOCS_POLICY),))
