"""Secrets of burrow.toml: written as they are, as `file:PATH`, or with `${NAME}` from the environment."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from warren.errors import SecretError

_FILE = "file:"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, repr=False)
class Secret:
    """A text that no message shows; that of a file is read at each use, so that a new one counts at once."""

    text: str = ""
    file: Path | None = None

    def __repr__(self) -> str:
        return "Secret(…)"

    def reveal(self) -> str:
        """The secret itself, without the newline that ends its file."""
        if self.file is None:
            return self.text
        try:
            text = self.file.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise SecretError(f"the secret in {self.file} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            # Its message quotes bytes of the secret.
            raise SecretError(f"the secret in {self.file} cannot be read: it is not UTF-8 text") from None
        return text.removesuffix("\n").removesuffix("\r")


def revealed(secret: Secret | None) -> str:
    """The secret itself, or "" if there is none."""
    return secret.reveal() if secret else ""


def resolve(written: str, config_dir: Path, environ: Mapping[str, str], *, may_be_file: bool = True) -> Secret:
    """The secret that a text of the configuration stands for; ValueError if its variable or file is missing.

    Only what is written decides: the value of a variable that begins with `file:` is no file.
    """
    missing = [name for name in _VARIABLE.findall(written) if name not in environ]
    if missing:
        raise ValueError(f"the environment variable {missing[0]} is not set")
    text = _VARIABLE.sub(lambda match: environ[match[1]], written)
    if not may_be_file or not written.startswith(_FILE):
        return Secret(text)
    path = Path(text.removeprefix(_FILE))
    secret = Secret(file=next((at for at in (path, config_dir / path) if at.exists()), path).absolute())
    try:
        secret.reveal()
    except SecretError as error:
        raise ValueError(str(error)) from None
    return secret
