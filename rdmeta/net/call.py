"""A request of the exchanges that a session runs by itself, and the type of such exchanges."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, TypeAlias

__all__ = ["RAW", "Call", "Steps"]

# The API key of a frame without a header: a SASL message of a broker before 1.0.
RAW = -1


class Call(NamedTuple):
    """A request: its API key, its version, and its body without the header."""

    api_key: int
    version: int
    body: bytes


Steps: TypeAlias = Generator[Call, bytes, float | None]
"""Exchanges in order: the generator yields a request and receives its answer's body.

It returns the seconds after which the broker wants the connection to log in again, None without a
limit.
"""
