"""Counters of each node's traffic: requests, bytes, round trips, logins again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rdmeta.config.address import Address

__all__ = ["Counted", "Traffic"]


class Counted(Protocol):
    """A connection that counts its bytes, and its logins after the first."""

    @property
    def bytes_sent(self) -> int: ...
    @property
    def bytes_received(self) -> int: ...
    @property
    def reauthentications(self) -> int: ...


@dataclass
class _Node:
    requests: int = 0
    answers: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    reauthentications: int = 0
    last_round_trip: float | None = None
    longest_round_trip: float | None = None


class Traffic:
    """The counters of all nodes, by their addresses; one thread uses it."""

    def __init__(self) -> None:
        self._nodes: dict[Address, _Node] = {}

    def sent(self, node: Address) -> None:
        """Counts a request."""
        self._of(node).requests += 1

    def answered(self, node: Address, seconds: float) -> None:
        """Counts an answer that came `seconds` after its request."""
        counters = self._of(node)
        counters.answers += 1
        counters.last_round_trip = seconds
        counters.longest_round_trip = max(counters.longest_round_trip or 0.0, seconds)

    def ended(self, node: Address, connection: Counted) -> None:
        """Adds the counts of a connection that is closed."""
        counters = self._of(node)
        counters.bytes_sent += connection.bytes_sent
        counters.bytes_received += connection.bytes_received
        counters.reauthentications += connection.reauthentications

    def read(
        self, open_connections: Sequence[tuple[Address, Counted]]
    ) -> dict[Address, dict[str, Any]]:
        """Returns the counters of each node, with those of the connections that are open."""
        found = {node: vars(counters).copy() for node, counters in self._nodes.items()}
        for node, connection in open_connections:
            counters = found.setdefault(node, self.nothing())
            counters["bytes_sent"] += connection.bytes_sent
            counters["bytes_received"] += connection.bytes_received
            counters["reauthentications"] += connection.reauthentications
        return found

    @staticmethod
    def nothing() -> dict[str, Any]:
        """Returns the counters of a node that was sent nothing."""
        return vars(_Node()).copy()

    def _of(self, node: Address) -> _Node:
        return self._nodes.setdefault(node, _Node())
