"""Futures in event loops that wait for one outcome, which a thread finds."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rdmeta.errors import Error

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Iterable

__all__ = ["hand_out", "settle"]

T = TypeVar("T")


def hand_out(waiters: Iterable[tuple[AbstractEventLoop, Future[T]]], outcome: T | Error) -> None:
    """Settles each future in its own loop, and leaves out closed loops; any thread may call it."""
    for loop, future in waiters:
        try:
            loop.call_soon_threadsafe(settle, future, outcome)
        except RuntimeError:  # the loop is closed
            continue


def settle(future: Future[T], outcome: T | Error) -> None:
    """Gives `future` its result or exception, unless it is done; its loop's thread may call it."""
    if future.done():  # cancelled
        return
    if isinstance(outcome, Error):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
