"""A change of leader that several recordings saw is one row, on the day of its first sight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from fake_cache import FakeCache, FakeClock
from gold_tables import gold_of, silver_of
from recorded import FIRST_DAY

from rdmeta import pipeline
from rdmeta.history import Recorder
from rdmeta.history.schema import CHANGE_SCHEMA
from rdmeta.pipeline.elections import SCHEMA, Baseline, Past, joined, past_of
from rdmeta.pipeline.tables import SCHEMAS

EVER = [(0, 10**15)]


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
    counts: Mapping[str, Sequence[tuple[int, int]]] | None = None,
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
    found = brief(*rows, counts={"a": [(0, 5)], "b": [(5, 10)]})
    assert found == [("a", 1, 1), ("b", 9, 1)]
    assert brief(*rows, counts={"a": [(0, 5)], "b": []}) == [("a", 1, 1)]


def test_where_a_log_tells_of_an_epoch_its_row_stands() -> None:
    rows = [change("a", 9), change("log", 12), change("b", 14)]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    counts = {"a": EVER, "b": EVER, "log": EVER}
    (row,) = joined(table, counts, {}, exact={"log"}).to_pylist()
    assert (row["origin"], row["recordings"], row["spread_us"]) == ("log", 3, 2)


def test_a_change_that_the_last_observation_of_an_origin_saw_counts() -> None:
    last = change("a", 5, topic_id=None)
    assert brief(last, counts={"a": [(2, 5)], "b": []}) == [("a", 5, 1)]
    assert brief(last, counts={"a": [(2, 4)], "b": []}) == []


def test_a_change_that_another_origin_had_at_midnight_is_past() -> None:
    past: Past = {"a": {("t", "A" * 22, 0): (5, 1)}}
    assert brief(change("b", 1), change("b", 2, epoch=6), past=past) == [("b", 2, 1)]
    assert brief(change("a", 1), past=past) == [("a", 1, 1)]


def test_the_epochs_at_midnight_are_those_of_pieces_that_began_there() -> None:
    pieces = pa.table(
        {
            "topic": ["t", "t", "t"],
            "topic_id": ["A", "B", None],
            "partition": [0, 1, 2],
            "leader_epoch": [3, 4, 5],
            "leader": [None, 1, 1],
            "began_by": ["midnight", "leader_changed", "midnight"],
        }
    )
    assert past_of(pieces) == {("t", "A", 0): (3, None)}


def test_a_change_at_midnight_itself_does_not_hide_the_epoch_of_the_baseline() -> None:
    mark = {"kind": "observed_from", "version": 7, "observed_at": 100}
    state = {**mark, "kind": "topic_added", "topic": "t", "topic_id": "A", "partition": 0}
    state["new_leader_epoch"] = 3
    moved = {**state, "kind": "leader_changed", "version": 8, "new_leader_epoch": 4}
    rows = [mark, {**state, "partition": None}, state, moved]
    batch = pa.RecordBatch.from_pylist(rows, schema=CHANGE_SCHEMA)
    assert Baseline(100).states(batch) == {("t", "A", 0): (3, None)}
    assert Baseline(99).states(batch) == {}
    assert Baseline(100).states(batch.slice(1)) == {}


def test_a_baseline_may_come_in_many_batches() -> None:
    mark = {"kind": "observed_from", "version": 7, "observed_at": 100}
    state = {**mark, "kind": "topic_added", "topic": "t", "topic_id": "A"}
    rows = [mark, *({**state, "partition": n, "new_leader_epoch": n} for n in range(3))]
    rows.append({**state, "partition": 3, "new_leader_epoch": 3, "version": 8})
    batch = pa.RecordBatch.from_pylist(rows, schema=CHANGE_SCHEMA)
    baseline = Baseline(100)
    found = [baseline.states(batch.slice(n, 1)) for n in range(len(rows))]
    assert found == [{}, *({("t", "A", n): (n, None)} for n in range(3)), {}]
    assert baseline.is_over


# ---- from recorders to churn ---------------------------------------------------------------------

Look = tuple[float, int, int | None]  # the hour, the epoch, the leader


def record(directory: Path, *recordings: list[Look]) -> None:
    """Writes what a recorder saw of one partition; it starts again for each of these recordings."""
    clock = FakeClock()
    cache = FakeCache(clock, "one")
    cache.add_topic("t", "A" * 22, [recordings[0][0][2]])
    for looks in recordings:
        with Recorder(cache, directory, clock=clock, max_gap=86400.0) as recorder:
            for hour, epoch, leader in looks:
                clock.now = FIRST_DAY + timedelta(hours=hour)
                if cache.topic("t").partitions[0][3:5] != (leader, epoch):
                    cache.set_leader("t", 0, leader, epoch)
                recorder.observe()


def elections(tmp_path: Path) -> tuple[list[Any], dict[Any, tuple[int, ...]]]:
    """Returns each row's day, epochs and elections; and churn of the whole by broker."""
    pipeline.run(pipeline.plan([tmp_path / "history"], tmp_path / "out"), workers=1)
    silver = silver_of(tmp_path / "out")
    rows = silver["leader_change"].to_pylist()
    known = ("old_leader_epoch", "new_leader_epoch", "elections")
    changes = [(row["observed_at"].day, *(row[name] for name in known)) for row in rows]
    churn: dict[Any, tuple[int, ...]] = {}
    for row in gold_of(silver, "churn_day"):
        names = ("gained", "lost", "kept", "elections", "unseen_elections")
        if row["kind"] != "topic":
            before = churn.get(row["broker"], (0,) * len(names))
            counts = (row[name] for name in names)
            churn[row["broker"]] = tuple(map(sum, zip(before, counts, strict=True)))
    return changes, churn


def test_a_rise_in_the_hole_of_a_recorder_is_that_of_another_one(tmp_path: Path) -> None:
    record(tmp_path / "history", [(23.5, 3, 1), (23.8, 3, 1)], [(23.9, 4, 2), (24.1, 4, 2)])
    record(tmp_path / "history", [(23.6, 3, 1), (24.03, 4, 2)])
    changes, churn = elections(tmp_path)
    assert changes == [(2, 3, 4, 1)]
    assert churn == {1: (0, 1, 0, 0, 0), 2: (1, 0, 0, 1, 0), None: (1, 1, 0, 1, 0)}


def test_what_one_recorder_skipped_another_one_explains(tmp_path: Path) -> None:
    record(tmp_path / "history", [(10, 3, 1), (10.2, 4, 2), (10.3, 5, 1)])
    record(tmp_path / "history", [(10, 3, 1), (10.1, 5, 1)])
    changes, churn = elections(tmp_path)
    assert changes == [(1, 4, 5, 1), (1, 3, 4, 1)]
    assert churn == {1: (1, 1, 0, 1, 0), 2: (1, 1, 0, 1, 0), None: (2, 2, 0, 2, 0)}


def test_a_rise_over_midnight_is_told_once_by_the_first_who_saw_it(tmp_path: Path) -> None:
    record(tmp_path / "history", [(23, 3, 1), (23.9, 4, 2), (24.5, 5, 1)])
    record(tmp_path / "history", [(23, 3, 1), (24.1, 4, 2), (24.6, 5, 1)])
    record(tmp_path / "history", [(23, 3, 1), (23.7, 3, 1), (24.2, 5, 1)])
    assert elections(tmp_path)[0] == [(1, 3, 4, 1), (2, 4, 5, 1)]


def test_an_epoch_that_is_seen_after_it_was_counted_has_no_elections(tmp_path: Path) -> None:
    record(tmp_path / "history", [(23, 3, 1), (23.9, 5, 1)])
    record(tmp_path / "history", [(23, 3, 1), (24.1, 4, 2), (24.2, 5, 1)])
    changes, churn = elections(tmp_path)
    assert changes == [(1, 3, 5, 2), (2, 3, 4, 0)]
    assert churn == {1: (0, 0, 1, 2, 1), None: (0, 0, 1, 2, 1)}


def test_an_epoch_that_a_recorder_began_with_is_part_of_the_chain(tmp_path: Path) -> None:
    record(tmp_path / "history", [(10, 3, 1), (10.2, 5, 3)])
    record(tmp_path / "history", [(10.1, 4, 2), (10.3, 7, 1)])
    record(tmp_path / "history", [(10.4, 6, 3)])
    changes, churn = elections(tmp_path)
    assert changes == [(1, 3, 4, 1), (1, 4, 5, 1), (1, 5, 6, 1), (1, 6, 7, 1)]
    assert churn[None] == (3, 3, 1, 4, 0)


def test_a_leader_that_another_recorder_missed_for_a_moment_is_no_election(tmp_path: Path) -> None:
    record(tmp_path / "history", [(10, 4, 1), (10.1, 5, None), (10.3, 5, 2)])
    record(tmp_path / "history", [(10, 4, 1), (10.2, 5, 2)])
    changes, churn = elections(tmp_path)
    assert changes == [(1, 4, 5, 1), (1, 5, 5, 0)]
    assert churn[None] == (1, 1, 0, 1, 0)


def test_a_leader_that_came_before_midnight_hides_no_rise(tmp_path: Path) -> None:
    record(tmp_path / "history", [(23, 4, 1), (24.1, 5, 2)])
    record(tmp_path / "history", [(23.1, 5, None), (23.2, 5, 2), (24.2, 5, 2)])
    assert elections(tmp_path)[0] == [(1, 5, 5, 0), (2, 4, 5, 1)]


def test_a_second_recorder_hides_no_fall_and_no_loss_of_a_leader(tmp_path: Path) -> None:
    for late in (0, 0.01):
        record(tmp_path / "history", [(23, 4, 1), (24.1 + late, 4, None), (24.2 + late, 2, 3)])
    changes, churn = elections(tmp_path)
    assert changes == [(2, 4, 4, 0), (2, 4, 2, -2)]
    assert churn[None][:3] == (1, 1, 0)
