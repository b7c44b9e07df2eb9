"""What keys of several sections may hold."""

from typing import Annotated

from warren.config.checks import ANY_TEXT, REGEX, SERVERS, Formerly, text, whole

SECONDS = whole(1, 1_000_000_000, "seconds")
SECONDS_OR_0 = whole(0, 1_000_000_000, "seconds")
TIMEOUT = whole(1, 300, "seconds")

Servers = Annotated[tuple[str, ...], SERVERS]
Allowlist = Annotated[str | None, REGEX, Formerly("group-whitelist")]
Denylist = Annotated[str | None, REGEX, Formerly("group-blacklist")]
ProfileName = Annotated[str | None, text("the name of a [client-profile.NAME] section")]
# Burrow turns on TLS or SASL when the key is there at all, so "" must not be taken for unset.
SecurityName = Annotated[str | None, ANY_TEXT]
