"""The counters per node."""

from __future__ import annotations

from typing import NamedTuple

from rdmeta.client.traffic import Traffic


class Connection(NamedTuple):
    bytes_sent: int
    bytes_received: int


def test_a_node_s_bytes_are_those_of_its_closed_and_open_connections() -> None:
    traffic = Traffic()
    traffic.ended(1, Connection(10, 100))
    traffic.ended(1, Connection(1, 2))
    found = traffic.read([(1, Connection(5, 7)), (2, Connection(3, 4))])
    assert (found[1]["bytes_sent"], found[1]["bytes_received"]) == (16, 109)
    assert (found[2]["bytes_sent"], found[2]["bytes_received"]) == (3, 4)
    assert traffic.read([])[1]["bytes_sent"] == 11


def test_round_trips_are_the_last_and_the_longest() -> None:
    traffic = Traffic()
    for seconds in (0.2, 0.5, 0.1):
        traffic.sent(1)
        traffic.answered(1, seconds)
    traffic.sent(1)
    found = traffic.read([])[1]
    assert (found["last_round_trip"], found["longest_round_trip"]) == (0.1, 0.5)
    assert (found["requests"], found["answers"]) == (4, 3)
