"""A change of leader that several recordings saw is one row, on the day of its first sight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from rdmeta.history.schema import CHANGE_SCHEMA
from rdmeta.pipeline.elections import SCHEMA, Baseline, Past, joined, past_of
from rdmeta.pipeline.tables import SCHEMAS

EVER = (0, 10**15)


def change(origin: str, at: int, epoch: int | None = 5, **values: Any) -> dict[str, Any]:
    return {
        "cluster_id": "c",
        "topic": "t",
        "topic_id": "A" * 22,
        "partition": 0,
        "observed_at": at,
        "new_leader": 1,
        "new_leader_epoch": epoch,
        "source": "poll",
        "origin": origin,
        "version": at,
        "recordings": 1,
        "partial": False,
        **values,
    }


def brief(
    *rows: dict[str, Any],
    counts: Mapping[str, tuple[int, int] | None] | None = None,
    past: Past | None = None,
) -> list[tuple[str, int, int]]:
    """Returns origin, version and recordings of each joined row."""
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    found = joined(table, counts or {"a": EVER, "b": EVER}, past or {})
    assert found.schema == SCHEMAS["leader_change"]
    return [(row["origin"], row["version"], row["recordings"]) for row in found.to_pylist()]


def test_a_change_that_two_recordings_saw_is_one_row_at_its_first_sight() -> None:
    assert brief(change("a", 7), change("b", 5)) == [("b", 5, 2)]


def test_the_spread_is_the_time_between_the_sights_of_several_recordings() -> None:
    rows = [change("a", 7), change("b", 5), change("a", 9), change("a", 9, epoch=6)]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    found = joined(table, {"a": EVER, "b": EVER}, {})
    assert found["spread_us"].to_pylist() == [4, None]
    alone = joined(table.slice(3), {"a": EVER}, {})
    assert alone["spread_us"].to_pylist() == [None]


def test_other_epochs_leaders_and_partitions_are_other_changes() -> None:
    rows = [change("a", 1), change("b", 2, epoch=6), change("b", 3, new_leader=2)]
    rows += [change("b", 4, partition=1), change("b", 5, topic_id="B" * 22)]
    assert [version for _, version, _ in brief(*rows)] == [1, 2, 3, 4, 5]


def test_a_change_that_one_recording_saw_twice_is_one_row() -> None:
    rows = [change("a", 1), change("a", 2, new_leader=2), change("a", 3), change("a", 4, epoch=6)]
    assert [version for _, version, _ in brief(*rows, counts={"a": EVER})] == [1, 2, 4]
    assert brief(*rows[2:], counts={"a": EVER}) == [("a", 3, 1), ("a", 4, 1)]
    assert brief(counts={"a": EVER}) == []
    assert brief(change("a", 1, topic_id=None), counts={"a": EVER}) == [("a", 1, 1)]


def test_without_topic_id_or_epoch_only_the_origin_that_counts_tells() -> None:
    rows = [change("a", 1, epoch=None), change("b", 2, epoch=None), change("b", 9, topic_id=None)]
    found = brief(*rows, counts={"a": (0, 5), "b": (5, 10)})
    assert found == [("a", 1, 1), ("b", 9, 1)]
    assert brief(*rows, counts={"a": (0, 5), "b": None}) == [("a", 1, 1)]


def test_a_change_that_the_last_observation_of_an_origin_saw_counts() -> None:
    last = change("a", 5, topic_id=None)
    assert brief(last, counts={"a": (2, 5), "b": None}) == [("a", 5, 1)]
    assert brief(last, counts={"a": (2, 4), "b": None}) == []


def test_a_change_that_another_origin_had_at_midnight_is_past() -> None:
    past = {"a": {("A" * 22, 0): 5}}
    assert brief(change("b", 1), change("b", 2, epoch=6), past=past) == [("b", 2, 1)]
    assert brief(change("a", 1), past=past) == [("a", 1, 1)]


def test_the_epochs_at_midnight_are_those_of_pieces_that_began_there() -> None:
    pieces = pa.table(
        {
            "topic_id": ["A", "B", None],
            "partition": [0, 1, 2],
            "leader_epoch": [3, 4, 5],
            "began_by": ["midnight", "leader_changed", "midnight"],
        }
    )
    assert past_of(pieces) == {("A", 0): 3}


def test_a_change_at_midnight_itself_does_not_hide_the_epoch_of_the_baseline() -> None:
    mark = {"kind": "observed_from", "version": 7, "observed_at": 100}
    state = {**mark, "kind": "topic_added", "topic_id": "A", "partition": 0, "new_leader_epoch": 3}
    moved = {**state, "kind": "leader_changed", "version": 8, "new_leader_epoch": 4}
    rows = [mark, {**state, "partition": None}, state, moved]
    batch = pa.RecordBatch.from_pylist(rows, schema=CHANGE_SCHEMA)
    assert Baseline(100).epochs(batch) == {("A", 0): 3}
    assert Baseline(99).epochs(batch) == {}
    assert Baseline(100).epochs(batch.slice(1)) == {}


def test_a_baseline_may_come_in_many_batches() -> None:
    mark = {"kind": "observed_from", "version": 7, "observed_at": 100}
    state = {**mark, "kind": "topic_added", "topic_id": "A"}
    rows = [mark, *({**state, "partition": n, "new_leader_epoch": n} for n in range(3))]
    rows.append({**state, "partition": 3, "new_leader_epoch": 3, "version": 8})
    batch = pa.RecordBatch.from_pylist(rows, schema=CHANGE_SCHEMA)
    baseline = Baseline(100)
    found = [baseline.epochs(batch.slice(n, 1)) for n in range(len(rows))]
    assert found == [{}, {("A", 0): 0}, {("A", 1): 1}, {("A", 2): 2}, {}]
    assert baseline.is_over
