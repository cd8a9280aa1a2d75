"""Fixtures of clients: both shells, and brokers of canned answers; a conftest imports them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import shells
from broker import Brokers
from shells import Maker

__all__ = ["brokers", "make"]


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
