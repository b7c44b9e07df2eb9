"""Looks for secrets where they must not be: in files, answers, command lines and environments, in every form."""

import base64
import contextlib
import os
import re
import stat
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.kit.certificates import Certificate
from tests.kit.unpack import unpacked

LOOK_S = 0.2
_MIN_PIECE = 10
"""A piece of a random secret this long is nowhere by chance."""


def pieces_of_text(secret: str) -> set[bytes]:
    """What shows a password or a token in a text.

    Escaping, by JAAS, JSON, TOML or URL, changes special characters only, so the pieces between them are there in
    every such form. In base64 a text has three forms, by where it begins in what is encoded.
    """
    pieces = {piece.encode() for piece in re.findall(r"[A-Za-z0-9]+", secret) if len(piece) >= _MIN_PIECE}
    assert pieces, "a secret that can be found needs a long random piece"
    raw = secret.encode()
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + raw)
        # Its first and last characters depend on the text around it as well.
        inner = encoded[4 if before else 0 : -4]
        pieces |= {inner, inner.translate(bytes.maketrans(b"+/", b"-_"))}
    return pieces


def pieces_of_token(token: str) -> set[bytes]:
    """What shows a signed token: its signature, the only part that is secret."""
    signature = token.rpartition(".")[2]
    longest = max(re.findall(r"[A-Za-z0-9]+", signature), key=len)
    return {longest.encode(), *(piece for piece in pieces_of_text(signature) if len(piece) > len(signature))}


def pieces_of_key(certificate: Certificate) -> set[bytes]:
    """What shows a private key: the lines of its PEM, which are the same in one line, and its bytes."""
    lines = [line for line in certificate.key.splitlines() if line and not line.startswith(b"-----")]
    return {*lines[:-1], base64.b64decode(b"".join(lines))}


class SecretSearch:
    """Everything that was found so far; `secrets` are the pieces of each secret by its name.

    `tokens` are secrets too, and get more while the search goes on.
    """

    def __init__(self, secrets: Mapping[str, Iterable[bytes]], tokens: Sequence[str] = ()) -> None:
        self._pieces = [(name, piece) for name, pieces in secrets.items() for piece in pieces]
        self._tokens = tokens
        self._known_tokens = 0
        self._lock = threading.Lock()
        self._seen: set[tuple[str, int, int]] = set()
        self.found: set[str] = set()
        """Which secret was found, and where."""
        self.looked_at = 0
        """How many files, answers and others were searched."""
        self.unpacked: Counter[str] = Counter()
        """How many parts of compressed files were searched, by format."""

    def search(self, where: str, content: bytes, besides: Iterable[str] = ()) -> None:
        """Look for all secrets but some, also in what is compressed."""
        self.looked_at += 1
        self._search(where, content, besides)
        for kind, part in unpacked(content):
            self.unpacked[kind] += 1
            self._search(f"{where} ({kind})", part, besides)

    def _search(self, where: str, content: bytes, besides: Iterable[str]) -> None:
        with self._lock:
            self._add_tokens()
            pieces = list(self._pieces)
        self.found |= {f"{name} in {where}" for name, piece in pieces if name not in besides and piece in content}

    def _add_tokens(self) -> None:
        new = self._tokens[self._known_tokens :]
        self._known_tokens += len(new)
        self._pieces += [("a token", piece) for token in new for piece in pieces_of_token(token)]

    def search_folder(self, folder: Path) -> None:
        """Look into every file below a folder that is new or has changed."""
        for parent, _, names in os.walk(folder):
            for file in (Path(parent, name) for name in names):
                # Files come and go while we look.
                with contextlib.suppress(OSError):
                    status = file.stat()
                    version = str(file), status.st_size, status.st_mtime_ns
                    if stat.S_ISREG(status.st_mode) and version not in self._seen:
                        self._seen.add(version)
                        self.search(str(file), file.read_bytes())

    def search_processes(self, pids: Iterable[int], own_variables: Mapping[str, str]) -> None:
        """Look at command lines and environments, in which the user has put secrets as variables (name: secret)."""
        for pid in pids:
            with contextlib.suppress(OSError):
                proc = Path(f"/proc/{pid}")
                self.search(f"the command line of {pid}", (proc / "cmdline").read_bytes())
                for variable in (proc / "environ").read_bytes().split(b"\0"):
                    name = variable.partition(b"=")[0].decode(errors="replace")
                    self.search(f"{name} of {pid}", variable, [own_variables[name]] if name in own_variables else [])


class FolderWatch:
    """Looks into folders all the time, so that files that exist only for a moment are seen too."""

    def __init__(self, search: SecretSearch, folders: Iterable[Path]) -> None:
        self._search, self._folders = search, list(folders)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="folder watch", daemon=True)

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_S):
            for folder in self._folders:
                self._search.search_folder(folder)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(60.0)
