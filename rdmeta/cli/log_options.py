"""Options that name a state of a metadata log: --log, --at and --proven; and points of a log.

It imports no part of rdmeta.kraft, so that `rdmeta list` starts as fast as without it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any, NamedTuple, TypeAlias

import click

from rdmeta._moments import parse_moment
from rdmeta.cli.messages import BadInputError

LogPoint: TypeAlias = "int | datetime"


class LogChoice(NamedTuple):
    """The log and the point of it of which a state is wanted."""

    paths: tuple[str, ...]
    at: LogPoint | None
    is_proven: bool


def point(text: str) -> LogPoint:
    """Returns an offset, or a time. Raises ValueError."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        return parse_moment(text)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{text!r} is neither an offset nor a time, such as 2026-11-22T03:05:00Z"
        ) from None


def point_option(name: str, help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator that adds an option whose value is a point of a log."""
    return click.option(name, metavar="OFFSET|TIME", callback=_point, help=help)


def _point(context: click.Context, option: click.Parameter, value: str | None) -> LogPoint | None:
    if value is None:
        return None
    try:
        return point(value)
    except ValueError as error:
        raise click.UsageError(f"{option.opts[-1]}: {error}", context) from None


at_option = point_option(
    "--at", "The state before this offset, or at this time; by default that of the log's end."
)
proven_option = click.option(
    "--proven", is_flag=True, help="Leave out what is not proven to be committed."
)


def state_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --log, --at and --proven; the function gets a LogChoice, or None, as `log`."""

    @wraps(function)
    def with_log(
        *args: Any, log: tuple[str, ...], at: LogPoint | None, proven: bool, **others: Any
    ) -> Any:
        if not log and (at is not None or proven):
            raise BadInputError("--at and --proven need --log PATH")
        return function(*args, log=LogChoice(log, at, proven) if log else None, **others)

    add_log = click.option(
        "--log",
        metavar="PATH",
        multiple=True,
        help="A metadata log, and no cluster; may be repeated, for copies of several nodes.",
    )
    return add_log(at_option(proven_option(with_log)))
