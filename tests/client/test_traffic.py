"""The counters per node."""

from __future__ import annotations

from typing import NamedTuple

from rdmeta.client.driver import Traffic
from rdmeta.config.address import Address

ONE, TWO = Address("one", 9092), Address("two", 9092)


class Connection(NamedTuple):
    bytes_sent: int
    bytes_received: int
    reauthentications: int = 0


def test_a_node_s_bytes_and_logins_are_those_of_its_closed_and_open_connections() -> None:
    traffic = Traffic()
    traffic.ended(ONE, Connection(10, 100, 3))
    traffic.ended(ONE, Connection(1, 2))
    found = traffic.read([(ONE, Connection(5, 7, 1)), (TWO, Connection(3, 4))])
    assert (found[ONE]["bytes_sent"], found[ONE]["bytes_received"]) == (16, 109)
    assert (found[TWO]["bytes_sent"], found[TWO]["bytes_received"]) == (3, 4)
    assert (found[ONE]["reauthentications"], found[TWO]["reauthentications"]) == (4, 0)
    closed = traffic.read([])[ONE]
    assert (closed["bytes_sent"], closed["reauthentications"]) == (11, 3)


def test_round_trips_are_the_last_and_the_longest() -> None:
    traffic = Traffic()
    for seconds in (0.2, 0.5, 0.1):
        traffic.sent(ONE)
        traffic.answered(ONE, seconds)
    traffic.sent(ONE)
    found = traffic.read([])[ONE]
    assert (found["last_round_trip"], found["longest_round_trip"]) == (0.1, 0.5)
    assert (found["requests"], found["answers"]) == (4, 3)
