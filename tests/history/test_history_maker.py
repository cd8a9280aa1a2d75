"""Histories from a seed are what a recorder writes: each file is whole, and old values are true."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from history_maker import Plan, make_history

from rdmeta._change_table import END_KINDS, WHOLE_KINDS
from rdmeta.history import look, read, recordings, verify

PLAN = Plan(
    clusters=2, topics=5, partitions=4, days=3, changes=600, gaps=2, recorders=2, file_every=1e4
)
FIELDS = {
    "leader_changed": ("leader", "leader_epoch"),
    "isr_changed": ("isr",),
    "replicas_changed": ("replicas",),
    "offline_changed": ("offline",),
}


def walk(rows: list[dict[str, Any]]) -> int:
    """Checks that each old value is what stood before; returns the number of changes."""
    state: dict[tuple[str, int], dict[str, Any]] = {}
    changes = 0
    for row in rows:
        key = (row["topic"], row["partition"])
        if row["kind"] in WHOLE_KINDS and row["partition"] is not None:
            names = (name for fields in FIELDS.values() for name in fields)
            state[key] = {name: row[f"new_{name}"] for name in names} | {"id": row["topic_id"]}
        elif row["kind"] in END_KINDS:
            state = {each: value for each, value in state.items() if each[0] != row["topic"]}
        elif row["kind"] in FIELDS:
            changes += 1
            assert state[key]["id"] == row["topic_id"]
            for name in FIELDS[row["kind"]]:
                assert state[key][name] == row[f"old_{name}"], row
                state[key][name] = row[f"new_{name}"]
    return changes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_each_made_recording_is_whole_and_its_old_values_stood_before(
    tmp_path: Path, seed: int
) -> None:
    rows = make_history(tmp_path, seed, PLAN)
    found = recordings(tmp_path)
    for recording in found:
        for file in recording.files:
            assert verify(file.path).unknown_kinds == {}
        table = read(tmp_path, session=recording.session)
        assert walk(table.to_pylist()) > 0
    assert len({each.cluster_id for each in found}) == 2
    assert {each.ended_by for each in found} == {"midnight", "gap", "closed"}
    assert len(read(tmp_path)) == rows


def test_recordings_of_a_made_history_continue_each_other_at_midnight(tmp_path: Path) -> None:
    make_history(tmp_path, 1, Plan(days=3, changes=200))
    one, two, three = recordings(tmp_path)
    assert (one.continues, two.continues, three.continues) == (None, one.session, two.session)
    assert one.observed_to == two.observed_from
    kinds = read(tmp_path)["kind"].to_pylist()
    assert sum(kinds.count(kind) for kind in FIELDS) > 300


@pytest.mark.slow
def test_a_seed_makes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_history(tmp_path / name, 7, PLAN)
    files = [sorted((tmp_path / name).rglob("*.parquet")) for name in ("a", "b")]
    assert [path.name for path in files[0]] == [path.name for path in files[1]]
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]


def test_a_day_of_a_made_history_can_be_deleted(tmp_path: Path) -> None:
    make_history(tmp_path, 3, Plan(days=3, changes=100, deleted=(1,)))
    found = look(tmp_path)
    assert found.quarantined == []
    assert len({file.session for file in found.files}) == 2
