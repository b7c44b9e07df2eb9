"""Calls to brokers beside the cycle."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def in_background(name: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
    """The future result of a call in a thread of its own."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - raised again where the result is taken
            future.set_exception(error)

    # A daemon, because a stop of Warren must not wait for brokers.
    threading.Thread(target=run, name=name, daemon=True).start()
    return future
