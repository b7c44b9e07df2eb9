import hmac
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warren.config.auth import parse_entries
from warren.web.auth import Guard, Role, user_of

FILE = b"""
read token reader
read basic eve:evening
admin basic ada:sha256:8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8
admin token jeton
read basic both:one
admin basic both:two
"""
ENTRIES, MISTAKES = parse_entries(FILE)
GUARD = Guard(ENTRIES)


def basic(words: str) -> bytes:
    return b"Basic " + b64encode(words.encode())


@pytest.mark.parametrize(
    ("header", "role"),
    [
        (b"Bearer reader", Role.READ),
        (b"bearer  reader ", Role.READ),
        (b"BEARER jeton", Role.ADMIN),
        (basic("eve:evening"), Role.READ),
        (basic("eve:evening").replace(b"Basic", b"basic"), Role.READ),
        (basic("ada:alpha"), Role.ADMIN),
        (basic("both:one"), Role.READ),
        (basic("both:two"), Role.ADMIN),
    ],
)
def test_a_secret_gives_its_role(header: bytes, role: Role) -> None:
    assert not MISTAKES
    assert GUARD.role_of(header) is role


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b" ",
        b"Bearer",
        b"Bearer ",
        b"Bearer reader2",
        b"Bearer reade",
        b"Bearer READER",
        b"Bearer sha256:8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8",
        b"reader",
        b"Token reader",
        b"Basic reader",
        b"Basic",
        b"Basic ====",
        b"Basic \xff\xfe",
        b"Bearer \xff\xfe\x00",
        basic("eve"),
        basic("eve:"),
        basic(":evening"),
        basic("eve:alpha"),
        basic("Eve:evening"),
        basic("ada:8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8"),
        basic(":reader"),
        basic("token:reader"),
        b"Bearer eve:evening",
        b"Basic " + b64encode(b"\xff:\xfe"),
        b"Basic " + b"A" * 10_000_000,
        b"Bearer " + b"A" * 10_000_000,
    ],
)
def test_other_headers_give_no_role(header: bytes | None) -> None:
    assert GUARD.role_of(header) is None


@pytest.mark.parametrize(
    ("header", "user"),
    [
        (basic("ada:alpha"), "ada"),
        (basic("zoë:a:b").replace(b"Basic", b"BASIC"), "zoë"),
        (basic(":alpha"), ""),
        (basic("ada"), None),
        (b"Bearer jeton", None),
        (b"Basic " + b64encode(b"\xff:x"), None),
        (b"", None),
    ],
)
def test_basic_authentication_gives_a_user_name(header: bytes, user: str | None) -> None:
    assert user_of(header) == user


@given(st.binary() | st.binary().map(b64encode), st.sampled_from([b"", b"Basic ", b"Bearer "]))
def test_any_bytes_are_accepted_as_header(words: bytes, scheme: bytes) -> None:
    assert GUARD.role_of(scheme + words) is None


@pytest.mark.parametrize("header", [None, b"Bearer anything", b"\xff"])
def test_without_authentication_everyone_is_admin(header: bytes | None) -> None:
    assert Guard(None).is_open
    assert Guard(None).role_of(header) is Role.ADMIN


def test_a_guard_with_entries_is_not_open() -> None:
    assert not GUARD.is_open
    assert (GUARD.role_of(b"Bearer reader"), GUARD.role_of(None)) == (Role.READ, None)


def test_a_guard_without_entries_admits_nobody() -> None:
    assert Guard(()).role_of(b"Bearer reader") is None


def test_admin_is_more_than_read() -> None:
    assert Role.READ < Role.ADMIN


@pytest.mark.parametrize("header", [b"Bearer reader", b"Bearer nobody", basic("eve:evening"), basic("eve:no")])
def test_every_part_of_every_entry_is_compared(monkeypatch: pytest.MonkeyPatch, header: bytes) -> None:
    compared: list[tuple[int, int]] = []
    compare = hmac.compare_digest

    def counted(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return compare(one, other)

    monkeypatch.setattr("warren.web.auth.hmac.compare_digest", counted)
    GUARD.role_of(header)
    assert compared == [(32, 32)] * 2 * len(ENTRIES), "although some are known to be right"
