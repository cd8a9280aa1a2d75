"""Fixtures of the metrics' tests: both clients, and brokers of canned answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from client_fixtures import brokers, make
from shells import Awaited

__all__ = ["brokers", "inner", "make"]


@pytest.fixture
def inner() -> Callable[[Any], Any]:
    """Returns a function that returns the client itself, without the face of the tests."""
    return lambda client: client.client if isinstance(client, Awaited) else client
