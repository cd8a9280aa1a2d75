"""Fixtures of the metrics' tests: both clients, and brokers of canned answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import shells
from broker import Brokers
from shells import Awaited, Maker


@pytest.fixture(params=["Client", "AsyncClient"])
def make(request: pytest.FixtureRequest) -> Iterator[Maker]:
    """Yields a maker of clients of one kind; a test that takes it runs over both."""
    with shells.blocking() if request.param == "Client" else shells.awaited() as maker:
        yield maker


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    """Yields three brokers that know the topic "orders", with six partitions."""
    with Brokers(3) as three:
        three.truth.create("orders", partitions=6)
        yield three


@pytest.fixture
def inner() -> Callable[[Any], Any]:
    """Returns a function that returns the client itself, without the face of the tests."""
    return lambda client: client.client if isinstance(client, Awaited) else client
