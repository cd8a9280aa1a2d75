"""The comparison of two recordings finds what differs: a time, a state, a missing piece."""

from __future__ import annotations

from typing import Any

import pytest
from agreement import Row, Told, compare, rows, told
from fake_cache import FakeCache, FakeClock

from rdmeta import pipeline
from rdmeta.history import Recorder

EVERY = (5, 8)  # tenths of a second
SECOND = 1_000_000


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> list[list[Row]]:
    """Returns partition_interval of two recordings of a cluster in which broker 2 is lost."""
    directory = tmp_path_factory.mktemp("two")
    clock = FakeClock()
    cache = FakeCache(clock)
    cache.add_broker(1)
    cache.add_topic("orders", "A" * 22, [2, 1])
    recorders = [Recorder(cache, directory / str(each), clock=clock) for each in EVERY]
    steps: dict[int, Any] = {
        31: lambda: cache.set_leader("orders", 0, 1),
        32: lambda: cache.set_isr("orders", 0, (1,)),
        33: lambda: cache.set_isr("orders", 1, (1,)),
        91: lambda: cache.set_isr("orders", 0, (1, 2)),
        111: lambda: cache.set_leader("orders", 0, 2),
    }
    for tenth in range(150):
        steps.get(tenth, int)()
        for recorder, every in zip(recorders, EVERY, strict=True):
            if tenth % every == 0:
                recorder.observe()
        clock.pass_seconds(0.1)
    found = []
    for recorder, every in zip(recorders, EVERY, strict=True):
        recorder.close()
        out = directory / f"tables-{every}"
        pipeline.run(pipeline.plan([directory / str(every)], out))
        found.append(rows(out, "partition_interval"))
    return found


def tell(pieces: list[Row], every: int) -> Told:
    return told(pieces, max(row["ended_at"] for row in pieces), every * SECOND // 10)


def compared(one: list[Row], other: list[Row]) -> tuple[int, int]:
    """Returns how many begins agree, and how many do not."""
    agreed, wrong = compare(tell(one, EVERY[0]), tell(other, EVERY[1]))
    return agreed, len(wrong)


def changed(pieces: list[Row], number: int, **columns: Any) -> list[Row]:
    return [row | (columns if i == number else {}) for i, row in enumerate(pieces)]


def test_two_recordings_of_one_cluster_agree(pieces: list[list[Row]]) -> None:
    agreed, wrong = compared(*pieces)
    assert wrong == 0
    # The loss, the return and the last change of leader; the loss in the other partition.
    assert agreed == 8


def test_times_that_are_shifted_beyond_the_gaps_do_not_agree(pieces: list[list[Row]]) -> None:
    one, other = (tell(each, every) for each, every in zip(pieces, EVERY, strict=True))
    for by in (-2 * SECOND, 2 * SECOND):
        agreed, wrong = compare(one, other.shifted(by))
        assert (agreed, len(wrong)) == (0, 8)


def test_another_state_and_a_missing_piece_do_not_agree(pieces: list[list[Row]]) -> None:
    one, other = pieces
    states = [(row["partition"], row["leader"], row["isr"]) for row in other]
    lost = states.index((0, 1, [1]))
    for column, value in (("leader", 3), ("leader_epoch", 9), ("isr", [1, 3]), ("offline", [2])):
        assert compared(one, changed(other, lost, **{column: value}))[1] == 2
    assert compared(one, other[:lost] + other[lost + 1 :])[1] == 1
