import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.config.written import SMALLEST, loaded, mistakes
from warren.config import read
from warren.config.auth import Auth, Entry, Role, digest_of, identity, parse_entries
from warren.config.summary import summary

HEX = hashlib.sha256(b"hush").hexdigest()


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        (b"read token hush", Entry(Role.READ, identity(), digest_of(b"hush"))),
        (b"admin token hush", Entry(Role.ADMIN, identity(), digest_of(b"hush"))),
        (b"  Admin\tTOKEN   hush  \r", Entry(Role.ADMIN, identity(), digest_of(b"hush"))),
        (f"read token sha256:{HEX}".encode(), Entry(Role.READ, identity(), digest_of(b"hush"))),
        (f"read token SHA256:{HEX.upper()}".encode(), Entry(Role.READ, identity(), digest_of(b"hush"))),
        (b"read token #1", Entry(Role.READ, identity(), digest_of(b"#1"))),
        (b"read basic me:hush", Entry(Role.READ, identity(b"me"), digest_of(b"hush"))),
        (b"read basic me:a:b c", Entry(Role.READ, identity(b"me"), digest_of(b"a:b c"))),
        (f"read basic me:sha256:{HEX}".encode(), Entry(Role.READ, identity(b"me"), digest_of(b"hush"))),
        (
            "read basic jürgen:größe".encode(),
            Entry(Role.READ, identity("jürgen".encode()), digest_of("größe".encode())),
        ),
    ],
)
def test_a_line_is_an_entry_whose_secret_is_not_kept(line: bytes, entry: Entry) -> None:
    assert parse_entries(b"\xef\xbb\xbf# who may ask\n\n" + line + b"\n") == ((entry,), [])
    assert "hush" not in repr(entry)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"hush", "must begin with read or admin"),
        (b"write token hush", "must begin with read or admin"),
        (b"token hush", "must begin with read or admin"),
        (b"read", "must have token or basic after the role"),
        (b"read hush", "must have token or basic after the role"),
        (b"read bearer hush", "must have token or basic after the role"),
        (b"read token", "must have one word after token"),
        (b"read token hush hush", "must have one word after token"),
        (b"read basic hush", "must have USER:PASSWORD after basic"),
        (b"read basic hush:", "must have USER:PASSWORD after basic"),
        (b"read basic :hush", "must have USER:PASSWORD after basic"),
        (b"read token sha256:hush", "must have 64 hexadecimal digits after sha256:"),
        (b"read basic me:sha256:", "must have 64 hexadecimal digits after sha256:"),
        (b"read token hush\xff", "must be UTF-8 text"),
        (b"read token hush\x00", "must have only printable characters"),
        (b"read token older", "is the same as line 1"),
        (f"admin token sha256:{hashlib.sha256(b'older').hexdigest()}".encode(), "is the same as line 1"),
    ],
)
def test_a_mistake_is_reported_with_its_line_and_without_the_secret(line: bytes, what: str) -> None:
    content = b"read token older\n#\n" + line + b"\nread token other"
    entries, message = parse_entries(content)
    assert message == [f"line 3: {what}"]
    assert len(entries) == 2


@pytest.mark.parametrize("content", [b"", b"\n# nobody\n"])
def test_a_file_that_lets_nobody_in_is_a_mistake(content: bytes) -> None:
    assert parse_entries(content) == ((), ["has no entry, so nobody could call the API"])


@given(st.binary())
def test_any_bytes_are_entries_or_mistakes(content: bytes) -> None:
    entries, message = parse_entries(content)
    assert entries or message
    assert all("\n" not in one for one in message)


def test_the_file_is_found_beside_burrow_toml_or_where_warren_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'{SMALLEST}[auth]\nfile = "auth.txt"'
    (tmp_path / "auth.txt").write_text("read token hush\nadmin basic me:hush\n")
    auth = loaded(tmp_path, text).auth
    assert auth is not None
    assert (auth.file, [entry.role for entry in auth.entries]) == (tmp_path / "auth.txt", [Role.READ, Role.ADMIN])
    (tmp_path / "cwd").mkdir()
    (tmp_path / "cwd" / "auth.txt").write_text("read token other\n")
    monkeypatch.chdir(tmp_path / "cwd")
    entries = (Entry(Role.READ, identity(), digest_of(b"other")),)
    assert loaded(tmp_path, text).auth == Auth(tmp_path / "cwd" / "auth.txt", entries)


def test_without_the_section_there_is_no_authentication(tmp_path: Path) -> None:
    assert loaded(tmp_path, SMALLEST).auth is None


def test_the_environment_alone_can_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "burrow.toml").write_text(SMALLEST)
    (tmp_path / "auth.txt").write_text("read token hush\n")
    config, _ = read(tmp_path, {"WARREN_AUTH_FILE": str(tmp_path / "auth.txt")})
    assert config is not None
    assert config.auth is not None
    assert len(config.auth.entries) == 1
    assert read(tmp_path, {"WARREN_AUTH_FILE": "gone.txt"})[1].mistakes == [
        'environment variable WARREN_AUTH_FILE = "gone.txt": cannot be read: No such file or directory'
    ]
    assert read(tmp_path, {"BURROW_ZOOKEEPER_TIMEOUT": "7"})[1].mistakes == [], "too little for a section"


@pytest.mark.parametrize(
    ("section", "content", "expected"),
    [
        (
            "",
            "",
            ["burrow.toml:10: [auth] file is missing: must be the path of a file, or open = true lets everyone in"],
        ),
        (
            'file = "auth.txt"\nopen = true',
            "read token hush",
            ["burrow.toml:12: [auth] open = true: everyone may do everything, so remove it or the key file"],
        ),
        ('file = ""', "", ['burrow.toml:11: [auth] file = "": must be the path of a file']),
        (
            'file = "gone.txt"',
            "",
            ['burrow.toml:11: [auth] file = "gone.txt": cannot be read: No such file or directory'],
        ),
        (
            'file = "auth.txt"',
            "hush\n\nread token sha256:hush",
            [
                'burrow.toml:11: [auth] file = "auth.txt": line 1: must begin with read or admin',
                'burrow.toml:11: [auth] file = "auth.txt": line 3: must have 64 hexadecimal digits after sha256:',
            ],
        ),
    ],
)
def test_a_mistake_in_the_file_is_one_of_the_configuration(
    tmp_path: Path, section: str, content: str, expected: list[str]
) -> None:
    (tmp_path / "auth.txt").write_text(content)
    assert mistakes(tmp_path, f"{SMALLEST}[auth]\n{section}") == expected


def test_the_summary_says_who_may_ask_where(tmp_path: Path) -> None:
    (tmp_path / "auth.txt").write_text("read token a\nread token b\nadmin token c\n")
    *_, last = summary(loaded(tmp_path, SMALLEST))
    what = "silences, acknowledgements and reloads from this machine only"
    assert last == f"HTTP on all interfaces, a free port, for everyone; {what}"
    *_, last = summary(loaded(tmp_path, f"{SMALLEST}[auth]\nopen = true"))
    assert last == "HTTP on all interfaces, a free port, for everyone"
    *_, last = summary(loaded(tmp_path, f'{SMALLEST}[auth]\nfile = "auth.txt"\n[httpserver.x]\naddress = "[::1]:80"'))
    assert last == f"HTTP on ::1, port 80, for the entries of {tmp_path}/auth.txt: 2 read, 1 admin"
