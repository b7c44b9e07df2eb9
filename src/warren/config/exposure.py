"""What a configuration lets everyone do over HTTP who reaches it, as `warren check` and the log say it."""

from urllib.parse import urlsplit

from warren.config.findings import Findings
from warren.config.http import is_loopback
from warren.config.load import Config

_WHAT_TO_DO = "add [auth] with a file, or accept this by open = true in [auth]"


def check_exposure(config: Config, findings: Findings) -> None:
    """Warn about what is open as in Burrow; what `[auth]` says is intended."""
    if not config.http_servers:
        what = "has no [httpserver.NAME] section: as Burrow does, Warren answers on all interfaces, at a free port"
        findings.risk(f"{what} that the log names")
    if config.auth is not None:
        if config.auth.open_:
            findings.note("= true: everyone who reaches Warren may change everything", ("auth",), "open")
        return
    exposed = [server for server in config.listeners.values() if not server.is_loopback]
    for server in exposed:
        where = f"{server.host or 'all interfaces'}, {f'port {server.port}' if server.port else 'a free port'}"
        findings.risk(
            f"without [auth] everyone who reaches it ({where}) may delete groups and set the log level, as in Burrow: "
            f"{_WHAT_TO_DO}",
            ("httpserver", server.name) if config.http_servers else (),
        )
    host = urlsplit(config.general.external_url or "").hostname or "localhost"
    if not exposed and not is_loopback(host):
        findings.risk(
            f"seems to be a proxy on this machine, and to Warren all its clients are on this machine: {_WHAT_TO_DO}",
            ("general",),
            "external-url",
        )
