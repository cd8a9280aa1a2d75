"""Every table says what recorders knew, over midnights, crashes, gaps and clocks that differ."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fleet import BEGIN, DAY_US, Fleet, Seen, State, told
from fold_model import COLUMNS
from gold_model_changes import churn
from logged_tables import assert_same_rows
from recorded import contents, large_days
from silver_model import made_silver, model_silver, states

from rdmeta import pipeline
from rdmeta.generate.scenarios import Sizes, clusters
from rdmeta.pipeline import layout
from rdmeta.pipeline.committing import EVERY_TABLE

COUNTS = ("gained", "lost", "kept", "elections", "unseen_elections")
ALL = (None, "elections")
# `make nightly` takes many seeds. RDMETA_SEED=N runs one again.
SEEDS = int(os.environ.get("RDMETA_SEEDS", "1"))


@pytest.fixture(params=range(SEEDS))
def seed() -> int:
    found = int(os.environ.get("RDMETA_SEED", time.time_ns() % 10**9))
    print(f"RDMETA_SEED={found}")
    return found


def made(source: Path, out: Path, **options: Any) -> Path:
    pipeline.run(pipeline.plan([source], out, in_place=True, **options), workers=1)
    return out


def unordered(rows: list[Any]) -> list[str]:
    return sorted(map(str, rows))


def tables(out: Path) -> dict[str, bytes]:
    """Returns all files but those that tell of the run itself."""
    names = ("input.parquet", "manifest.json")
    return {name: content for name, content in contents(out).items() if name not in names}


def days_of(directory: Path) -> list[Path]:
    """Returns the folders of days that recorders made."""
    return sorted(directory.glob("cluster=*/day=*"))


def move(folder: Path, source: Path, target: Path) -> None:
    """Moves a folder of a day, as a copy from another machine brings it."""
    there = target / folder.relative_to(source)
    there.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(folder, there)


def wide(key: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns a state with the columns behind its own, which only logs tell."""
    return (*values, *[None] * (len(COLUMNS[f"{key[0]}_interval"][1]) - len(values)))


@pytest.mark.proof
def test_every_table_is_that_of_a_naive_walk_and_says_what_recorders_knew(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet("one", tmp_path / "history", seed)
    large_days(monkeypatch)
    out = made(tmp_path / "history", tmp_path / "out")
    silver, model = made_silver(out, "one"), model_silver(tmp_path / "history", "one")
    for table in model:
        assert unordered(silver[table]) == unordered(model[table]), table
    random = Random(seed)
    edges = [at for seen in fleet.seen for at, _ in seen.looks]
    for edge in random.sample(edges, min(len(edges), 150)):
        for at in (edge - 1, edge, edge + random.randrange(1, 900_000_000)):
            session, state = told(fleet.seen, at)
            wanted = {key: (*wide(key, values), session) for key, values in state.items()}
            assert states(silver, at) == wanted, at


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bad-friday", "before-after"])
def test_recorders_of_a_scenario_make_the_tables_of_a_naive_walk(
    tmp_path: Path, seed: int, name: str
) -> None:
    (cluster,) = clusters(name, seed, BEGIN, Sizes(2, 1, 4, 2, 2))
    Fleet("one", tmp_path / "history", seed, hours=48, changes=cluster.changes)
    out = made(tmp_path / "history", tmp_path / "out")
    silver, model = made_silver(out, "one"), model_silver(tmp_path / "history", "one")
    for table in model:
        assert unordered(silver[table]) == unordered(model[table]), table
    assert silver["leader_change"]


@pytest.mark.slow
@pytest.mark.parametrize("recorders", [1, 2, 3, 5])
def test_however_many_recorders_there_are_churn_is_that_of_all_their_looks(
    tmp_path: Path, seed: int, recorders: int
) -> None:
    source = tmp_path / "history"
    fleet = Fleet("one", source, seed, changes=250, recorders=recorders, skips=True)
    changes: dict[Any, list[dict[str, Any]]] = {}
    for row in made_silver(made(source, tmp_path / "out"), "one")["leader_change"]:
        changes.setdefault((row["topic"], row["topic_id"], row["partition"]), []).append(row)
    known, risen = looks_of(fleet)
    assert risen.keys() == {thing for thing in changes if thing[1] is not None}
    for thing, epochs in risen.items():
        rows = changes[thing]
        assert len({row["new_leader_epoch"] for row in rows}) == len(rows), thing
        found: Counter[Any] = Counter()
        for row in churn(defaultdict(list, leader_change=rows)):
            if row["kind"] != "topic":
                found.update({(row["broker"], name): row[name] for name in COUNTS})
        wanted = churn_of(known[thing], epochs)
        late = [
            known[thing][epoch][0] // DAY_US > row["observed_at"] // DAY_US
            for row in rows
            for epoch in range(row["old_leader_epoch"] + 1, row["new_leader_epoch"])
            if epoch in known[thing]
        ]
        assert all(late), thing
        if late:  # an epoch was seen on the day after its elections had been counted
            wanted, found = (Counter({ALL: each[ALL]}) for each in (wanted, found))
        assert +found == +wanted, thing


def looks_of(fleet: Fleet) -> tuple[dict[Any, dict[int, tuple[int, Any]]], dict[Any, set[int]]]:
    """Returns by partition when each epoch was seen first, with its leader; and those of rises."""
    known: dict[Any, dict[int, tuple[int, Any]]] = {}
    risen: dict[Any, set[int]] = {}
    for at, before, now in (pair for seen in fleet.seen for pair in pairs(seen)):
        for key, values in now.items():
            if key[0] != "partition" or values[0] is None:
                continue
            thing, (leader, epoch) = (key[1], values[0], key[2]), values[1:3]
            was = (before or {}).get(key, (None,))
            states = [(epoch, leader)]
            if was[0] == values[0]:
                states.append((was[2], was[1]))
            elif before is not None:  # it came since the look before
                states.append((0, fleet.first[thing]))
            for each, who in states:
                first = known.setdefault(thing, {}).setdefault(each, (at, who))
                known[thing][each] = min(first, (at, who), key=lambda seen: seen[0])
            if len(states) > 1 and states[1][0] < epoch:
                risen.setdefault(thing, set()).update(range(states[1][0] + 1, epoch + 1))
    return known, risen


def pairs(seen: Seen) -> Iterator[tuple[int, State | None, State]]:
    """Yields each look's time and state, and the state before it."""
    before = None
    for at, state in seen.looks:
        yield at, before, state
        before = state


def churn_of(known: Mapping[int, tuple[int, Any]], risen: set[int]) -> Counter[Any]:
    """Returns the counts of a partition by broker, and in the cluster."""
    counts: Counter[Any] = Counter()
    for epoch in risen & known.keys():
        old = max(each for each in known if each < epoch)
        was, leader = known[old][1], known[epoch][1]
        for broker in {None, leader}:
            counts[broker, "elections"] += epoch - old
            counts[broker, "unseen_elections"] += epoch - old - 1
            counts[broker, "kept"] += was == leader is not None
            counts[broker, "gained"] += was != leader is not None
        for broker in {None, was}:
            counts[broker, "lost"] += was != leader and was is not None
    return counts


@pytest.mark.slow
def test_days_that_arrive_in_any_order_make_the_bytes_of_one_run(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, late = tmp_path / "history", tmp_path / "late"
    for name in ("one", "two"):
        Fleet(name, source, seed + len(name), hours=52, changes=30, recorders=2)
    if is_large := bool(seed % 2):
        large_days(monkeypatch)
    whole = made(source, tmp_path / "whole")
    random = Random(seed)
    for folder in days_of(source):
        move(folder, source, late)
    waiting = days_of(late)
    random.shuffle(waiting)
    out = tmp_path / "out"
    for folder in waiting:
        move(folder, late, source)
        before = tables(out) if out.exists() else {}
        made(source, out)
        alone = tables(made(source, tmp_path / "alone"))
        shutil.rmtree(tmp_path / "alone")
        assert tables(out) == alone
        assert is_large or set(before) <= set(alone)
    assert tables(out) == tables(whole)
    assert pipeline.check(out) == []


@pytest.mark.slow
def test_runs_of_some_days_first_and_all_later_make_the_bytes_of_one_run(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "history"
    Fleet("one", source, seed, hours=76, changes=30, recorders=2)
    random = Random(seed)
    if random.random() < 0.5:
        large_days(monkeypatch)
    if random.random() < 0.5:
        monkeypatch.setattr(layout, "_PART_ROWS", 30)
    whole = made(source, tmp_path / "whole")
    days = sorted({folder.name.removeprefix("day=") for folder in days_of(source)})
    out = tmp_path / "out"
    for _ in range(3):
        since, until = sorted(random.choices(days, k=2))
        made(source, out, since=since, until=until)
    made(source, out)
    assert tables(out) == tables(whole)
    assert pipeline.check(out) == []


@pytest.mark.slow
def test_parts_by_topic_have_the_rows_of_a_single_part(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "history"
    Fleet("one", source, seed)
    month = made_silver(made(source, tmp_path / "month"), "one")
    large_days(monkeypatch)
    days = made_silver(made(source, tmp_path / "days"), "one")
    monkeypatch.setattr(layout, "_PART_ROWS", 30)
    out = made(source, tmp_path / "parts")
    assert list(out.glob("silver/v1/change/*/*/part-1-of-*.parquet"))
    parts = made_silver(out, "one")
    for table in parts:
        assert unordered(parts[table]) == unordered(days[table]) == unordered(month[table]), table


@pytest.mark.slow
def test_days_whose_input_is_gone_stay_and_late_input_of_them_is_named(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, late = tmp_path / "history", tmp_path / "late"
    Fleet("one", source, seed, hours=76, changes=40, recorders=2)
    large_days(monkeypatch)
    random = Random(seed)
    folders = days_of(source)
    held = [path for folder in folders for path in folder.glob("*.parquet")]
    # Some recordings of the days that will go have not arrived yet.
    lost = {folder.name.removeprefix("day="): folder for folder in random.sample(folders, 2)}
    waiting = [path for path in held if path.parent in lost.values() and random.random() < 0.3]
    for path in waiting:
        move(path, source, late)
    out = made(source, tmp_path / "out")
    days = {day for day in lost if list(out.glob(f"silver/v1/*/*/period={day}/*"))}
    before = {name: content for name, content in tables(out).items() if _is_of(name, days)}
    for folder in lost.values():
        shutil.rmtree(folder)
    made(source, out)
    for path in waiting:
        move(late / path.relative_to(source), late, source)
    plan = pipeline.plan([source], out, in_place=True)
    pipeline.run(plan, workers=1)
    now = tables(out)
    assert {name: now.get(name) for name in before} == before
    assert {day for _, day in plan.gone} == days
    named = {each.path for each in plan.files if each.state in ("set aside", "duplicate")}
    for path in waiting:
        if path.parent.name.removeprefix("day=") in days:
            assert str(path) in named, path
    assert pipeline.check(out) == []
    fresh = tables(made(source, tmp_path / "fresh"))
    for name, content in fresh.items():
        if name.startswith("silver/v1/") and not _is_of(name, set(lost)):
            assert now[name] == content, name


def _is_of(name: str, days: set[str]) -> bool:
    return any(f"/period={day}/" in name for day in days)


@pytest.mark.nightly  # test_gold_frames compares the kinds in each run of CI
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_tables_with_logs_have_the_rows_of_a_folder(
    tmp_path: Path, seed: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the days come later, so that a second run takes files out of the tables."""
    source, late = tmp_path / "history", tmp_path / "late"
    Fleet("one", source, seed)
    if seed % 2:
        large_days(monkeypatch)
    for folder in days_of(source)[1::2]:
        move(folder, source, late)
    settings = {"gold": True, "min_isr": 2 if seed % 3 else None}
    made(source, tmp_path / "out", tables=kind, **settings)
    for folder in days_of(late):
        move(folder, late, source)
    out = made(source, tmp_path / "out", **settings)
    assert_same_rows(out, made(source, tmp_path / "folder", **settings), EVERY_TABLE)
    assert pipeline.check(out) == []
