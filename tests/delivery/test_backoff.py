"""How long to wait before the next attempt."""

import pytest

from warren.delivery.backoff import Backoff

BACKOFF = Backoff(first_s=1.0, longest_s=30.0)


@pytest.mark.parametrize(("failures", "wait_s"), [(0, 1), (1, 2), (2, 4), (4, 16), (5, 30), (10_000, 30)])
def test_the_wait_doubles_with_each_failure_up_to_a_limit(failures: int, wait_s: float) -> None:
    assert BACKOFF.wait_s(failures, jitter=lambda: 1.0) == wait_s
    assert BACKOFF.wait_s(failures, jitter=lambda: 0.0) == wait_s / 2
    assert wait_s / 2 <= BACKOFF.wait_s(failures) <= wait_s


@pytest.mark.parametrize(("least_s", "wait_s"), [(0.0, 4.0), (3.0, 4.0), (7.0, 7.0), (3600.0, 30.0)])
def test_a_server_may_ask_for_a_longer_wait_within_the_limit(least_s: float, wait_s: float) -> None:
    assert BACKOFF.wait_s(2, least_s, lambda: 1.0) == wait_s
