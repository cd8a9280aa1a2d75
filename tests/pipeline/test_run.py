"""A run makes each part once, only what differs, and the same bytes at any time."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fake_cache import FakeCache, FakeClock
from history_files import rewrite
from processes import environment as surroundings
from recorded import FIRST_DAY, cluster_day, contents, large_days, tree

from rdmeta import pipeline
from rdmeta.history import Recorder, compact
from rdmeta.pipeline import attempting, layout
from rdmeta.pipeline.attempting import attempt
from rdmeta.pipeline.errors import BadFileError
from rdmeta.pipeline.store import Store
from rdmeta.pipeline.tables import TABLES, rows_of_days
from rdmeta.pipeline.task import _DayMaker, make
from rdmeta.pipeline.work import AnyTask, Result


def made(source: Path, out: Path, **options: Any) -> pipeline.Made:
    return pipeline.run(pipeline.plan([source], out, **options), workers=1)


def rows(out: Path, table: str) -> pa.Table:
    paths = sorted(out.glob(f"silver/v1/{table}/cluster=*/*/part-*.parquet"))
    return pa.concat_tables([pq.read_table(path, partitioning=None) for path in paths])


def with_column(path: Path, name: str, value: object) -> pa.Table:
    """Returns a file's rows with this value in each row of a column."""
    table = pq.read_table(path, partitioning=None)
    store = table.schema.get_field_index(name)
    field = table.schema.field(store)
    return table.set_column(store, field, pa.array([value] * table.num_rows, field.type))


def parts(made: pipeline.Made) -> set[str]:
    """Returns the periods that a run made."""
    return {file.name.split("period=")[1].split("/")[0] for file in made.made}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Returns a history of one day."""
    cluster_day(tmp_path / "history", "one", 1)
    return tmp_path / "history"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture
def by_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets each cluster have a part for each day."""
    large_days(monkeypatch)


def test_a_second_run_opens_nothing_for_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    for day in (1, 2, 3):
        cluster_day(source, "one", day)
    first = made(source, out)
    assert len(first.copied) == 6
    assert first.rows["read"] == sum(
        file.rows for file in first.plan.files if "bronze" in file.name
    )
    assert pipeline.check(out) == []
    before = tree(out)

    def written(*arguments: object, **_: object) -> NoReturn:
        raise AssertionError(f"opened {arguments[0]} for writing")

    for name in ("replace", "rename", "unlink", "mkdir"):
        monkeypatch.setattr(os, name, written)
    monkeypatch.setattr(pq, "ParquetWriter", written)
    second = made(source, out)
    assert (second.made, second.copied) == ([], [])
    assert second.unchanged == len(first.made)
    assert tree(out) == before


@pytest.mark.slow
@pytest.mark.usefixtures("by_day")
def test_a_late_file_makes_the_days_that_it_touches(tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    for day in (1, 2, 3):
        cluster_day(source, "one", day)
        cluster_day(source, "two", day)
    made(source, out)
    before = contents(out)
    cluster_day(source, "one", 2, at=50_000)
    second = made(source, out)
    assert parts(second) == {"2026-11-02"}
    after = contents(out)
    changed = {name for name in after if after[name] != before.get(name)}
    assert {name for name in changed if "silver" in name and "cluster=two" in name} == set()
    assert rows(out, "observation").num_rows == 7

    shutil.rmtree(tmp_path / "fresh", ignore_errors=True)
    made(source, tmp_path / "fresh")
    fresh = contents(tmp_path / "fresh")
    silver = [name for name in after if name.startswith("silver")]
    assert {name: after[name] for name in silver} == {name: fresh[name] for name in silver}


def test_a_month_takes_the_days_that_have_not_changed_from_its_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    for day in (1, 2, 3):
        cluster_day(source, "one", day)
    made(source, out)
    cluster_day(source, "one", 4)
    read: list[str] = []

    def opened(store: Store, name: str, days: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
        read.append(name)
        return rows_of_days(store, name, days)

    monkeypatch.setattr("rdmeta.pipeline.task.rows_of_days", opened)
    second = made(source, out)
    assert parts(second) == {"2026-11"}
    assert second.rows["read"] == 13
    assert len(read) == len(set(read)) == len(TABLES)  # each part once, not once for each day
    made(source, tmp_path / "fresh")
    name = layout.table_file("partition_interval", "one", "2026-11", 0, 1)
    assert (out / name).read_bytes() == (tmp_path / "fresh" / name).read_bytes()


def damage_part(out: Path, damage: str) -> Path:
    """Deletes a part of a month, or turns bits of its pages: its size and its footer stay."""
    part = out / layout.table_file("partition_interval", "one", "2026-11", 0, 1)
    if damage == "missing":
        part.unlink()
        return part
    content = bytearray(part.read_bytes())
    content[60:400] = bytes(255 - byte for byte in content[60:400])
    part.write_bytes(content)
    return part


@pytest.mark.parametrize("damage", ["missing", "turned bits"])
def test_days_of_a_damaged_part_are_made_from_their_input(
    source: Path, out: Path, tmp_path: Path, damage: str
) -> None:
    made(source, out)
    damage_part(out, damage)
    cluster_day(source, "one", 2)
    made(source, out)
    made(source, tmp_path / "fresh")
    assert silver(out) == silver(tmp_path / "fresh")
    assert pipeline.check(out) == []


@pytest.mark.parametrize("damage", ["missing", "turned bits"])
def test_a_damaged_part_is_named_if_input_of_it_is_gone(tmp_path: Path, damage: str) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source / "a", "one", 1)
    made(source, out, in_place=True)
    shutil.copytree(out, tmp_path / "kept")
    shutil.rmtree(source / "a")
    part = damage_part(out, damage)
    cluster_day(source / "b", "one", 2)
    for _ in range(2):
        with pytest.raises(pipeline.PipelineError, match="input of 2026-11-01 is gone") as caught:
            made(source, out, in_place=True)
        assert str(part) in str(caught.value)
    shutil.copy(tmp_path / "kept" / part.relative_to(out), part)
    made(source, out, in_place=True)
    assert rows(out, "observation").num_rows == 2
    assert pipeline.check(out) == []


@pytest.mark.parametrize("in_place", [False, True])
def test_input_that_is_gone_takes_nothing_away(tmp_path: Path, in_place: bool) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    for day in (1, 2, 3):
        cluster_day(source / f"day-{day}", "one", day)
    made(source, out, in_place=in_place)
    before = rows(out, "partition_interval")
    shutil.rmtree(source / "day-1")
    shutil.rmtree(out / "bronze/cluster=one/day=2026-11-01", ignore_errors=True)
    second = made(source, out, in_place=in_place)
    assert second.plan.gone == (("one", "2026-11-01"),)
    assert rows(out, "partition_interval").equals(before)
    cluster_day(source / "late", "one", 1, at=70_000)
    third = made(source, out, in_place=in_place)
    late = [each for each in third.plan.quarantined if "late" in each.path or not in_place]
    assert late
    assert all("other input of 2026-11-01 had gone" in str(f.reason) for f in late)
    assert rows(out, "partition_interval").equals(before)
    cluster_day(source / "day-4", "one", 4)
    made(source, out, in_place=in_place)
    later = rows(out, "partition_interval")
    assert later.slice(0, before.num_rows).equals(before)
    assert later.num_rows > before.num_rows
    assert pipeline.check(out) == []


def test_a_damaged_file_is_quarantined_and_all_else_goes_on(source: Path, out: Path) -> None:
    cluster_day(source, "two", 1)
    bad = next(source.rglob("changes-one.*.00000000000000000000-*"))
    bad.write_bytes(bad.read_bytes()[:-20])
    result = made(source, out)
    reasons = [each.reason or "" for each in result.plan.quarantined]
    assert any("not a whole Parquet file" in reason for reason in reasons)
    assert any("first file, with the whole state, is missing" in reason for reason in reasons)
    assert set(rows(out, "partition_interval")["cluster_id"].to_pylist()) == {"two"}


@pytest.mark.parametrize("in_place", [False, True])
def test_a_file_whose_pages_are_damaged_is_quarantined(
    source: Path, out: Path, in_place: bool
) -> None:
    cluster_day(source, "two", 1)
    bad = next(source.rglob("changes-one.*.00000000000000000000-*"))
    content = bytearray(bad.read_bytes())
    content[4:600] = b"\xff" * 596
    bad.write_bytes(content)
    result = made(source, out, in_place=in_place)
    assert str(bad) in {each.path for each in result.plan.quarantined}
    names = [each.name for each in result.made]
    assert len(names) == len(set(names)) == len(TABLES)
    assert result.unchanged == 0
    assert set(rows(out, "partition_interval")["cluster_id"].to_pylist()) == {"two"}
    before = tree(out)
    again = made(source, out, in_place=in_place)
    assert len(again.plan.quarantined) == len(result.plan.quarantined)
    assert tree(out) == before


def test_a_copy_has_rows_that_agree_with_its_footer(source: Path, out: Path) -> None:
    cluster_day(source, "two", 1)
    bad = next(source.rglob("changes-one.*.00000000000000000000-*"))
    rewrite(bad, with_column(bad, "cluster_id", "two"))
    result = made(source, out)
    reasons = [each.reason for each in result.plan.quarantined]
    assert "a row has another cluster_id than its footer, one" in reasons
    assert not list(out.glob(f"bronze/*/*/{bad.name}"))


@pytest.mark.parametrize("in_place", [False, True])
def test_a_file_that_no_fold_takes_is_copied_once_and_quarantined(
    source: Path, out: Path, in_place: bool
) -> None:
    cluster_day(source, "two", 1)
    bad = next(source.rglob("changes-one.*.00000000000000000000-*"))
    rewrite(bad, with_column(bad, "partition", 2**31 - 1))
    result = made(source, out, in_place=in_place)
    assert str(bad) in {each.path for each in result.plan.quarantined}
    assert set(rows(out, "partition_interval")["cluster_id"].to_pylist()) == {"two"}
    assert pipeline.check(out) == []
    before = tree(out)
    made(source, out, in_place=in_place)
    assert tree(out) == before


@pytest.mark.parametrize(
    ("begin", "end", "reason"),
    [
        (1, 13_000, "its observation lasts more than 32 days"),
        (13_000, 13_001, "begins more than 32 days after changes-one."),
    ],
)
def test_years_without_rows_make_no_rows_and_stop_no_other_cluster(
    source: Path, out: Path, begin: int, end: int, reason: str
) -> None:
    cluster_day(source, "two", 1)
    _, last = sorted(source.rglob("changes-one.*"))
    from_us = int(pq.read_schema(last).metadata[b"rdmeta.observed_from_us"])
    times = [from_us + days * 86_400_000_000 for days in (begin, end)]
    empty = pq.read_table(last, partitioning=None).slice(0, 0)
    rewrite(last, empty, observed_from_us=str(times[0]), observed_to_us=str(times[1]))
    result = made(source, out, in_place=True)
    (fault,) = result.plan.quarantined
    assert (fault.path, reason in str(fault.reason)) == (str(last), True)
    assert {*rows(out, "partition_interval")["cluster_id"].to_pylist()} == {"one", "two"}
    assert rows(out, "observation").num_rows == 2
    assert pipeline.check(out) == []


def test_what_does_not_fit_on_the_disk_leaves_the_tables_as_they_were(
    source: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(source, out)
    before = contents(out)
    cluster_day(source, "one", 2)

    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            made(source, out)
    assert {n: c for n, c in contents(out).items() if n != "lock"} == before
    made(source, out)
    made(source, tmp_path / "fresh")
    assert silver(out) == silver(tmp_path / "fresh")
    assert pipeline.check(out) == []


def silver(out: Path) -> dict[str, bytes]:
    return {name: c for name, c in contents(out).items() if name.startswith("silver")}


def test_leftovers_of_a_run_that_died_are_removed(source: Path, out: Path) -> None:
    made(source, out)
    left = out / "silver/v1/change/cluster=one" / f".part-0-of-1.parquet.{'0' * 32}.tmp"
    left.write_bytes(b"cut")
    assert [fault.reason for fault in pipeline.check(out)] == ["a run left it unfinished"]
    made(source, out)
    assert not left.exists()
    assert pipeline.check(out) == []


def test_a_part_that_is_missing_is_made_again(source: Path, out: Path) -> None:
    made(source, out)
    before = contents(out)
    (out / layout.table_file("leader_change", "one", "2026-11", 0, 1)).unlink()
    assert "is missing" in pipeline.plan([source], out).tasks[0].reason
    assert len(made(source, out).made) == 1
    assert contents(out) == before


def test_a_part_of_another_size_is_made_again(source: Path, out: Path) -> None:
    made(source, out)
    before = contents(out)
    part = out / layout.table_file("change", "one", "2026-11", 0, 1)
    part.write_bytes(part.read_bytes()[:-1])
    assert "is not the file that was made" in pipeline.plan([source], out).tasks[0].reason
    assert [each.name for each in made(source, out).made] == [str(part.relative_to(out))]
    assert contents(out) == before


def test_a_file_that_changes_between_plan_and_copy_is_looked_at_again(
    source: Path, out: Path
) -> None:
    plan = pipeline.plan([source], out)
    first = next(source.rglob("*.00000000000000000000-*"))
    rewrite(first, pq.read_table(first, partitioning=None), name="production")
    result = pipeline.run(plan)
    assert result.plan.quarantined == ()
    (copy,) = out.glob(f"bronze/*/*/{first.name}")
    assert copy.read_bytes() == first.read_bytes()
    assert rows(out, "partition_interval").num_rows > 0
    assert pipeline.check(out) == []


def test_only_the_clusters_and_days_that_were_asked_for_are_made(tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    for day in (1, 2, 3):
        cluster_day(source, "one", day)
        cluster_day(source, "two", day)
    made(source, out, clusters=["uno"], names={"one": "uno"}, since="2026-11-02")
    assert set(rows(out, "observation")["cluster_id"].to_pylist()) == {"one"}
    assert rows(out, "observation").num_rows == 2
    made(source, out, until="2026-11-02")
    assert rows(out, "observation").num_rows == 4  # the second cluster has only the first day
    made(source, out)
    made(source, tmp_path / "fresh")
    assert silver(out) == silver(tmp_path / "fresh")
    with pytest.raises(pipeline.PipelineError, match="no cluster 'three'"):
        pipeline.plan([source], out, clusters=["three"])


def test_a_folder_without_history_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(pipeline.PipelineError, match="there are no history files"):
        pipeline.plan([tmp_path], tmp_path.parent / f"{tmp_path.name}-out")
    with pytest.raises(pipeline.PipelineError, match="there is no such folder"):
        pipeline.plan([tmp_path / "nowhere"], tmp_path / "out")
    inside = tmp_path / "out"
    for source, out in (
        (tmp_path, inside),
        (tmp_path.as_uri(), inside),
        (tmp_path, inside.as_uri()),
    ):
        with pytest.raises(pipeline.PipelineError, match="cannot share files"):
            pipeline.plan([source], out)


def test_input_of_foreign_files_alone_is_an_error(tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    source.mkdir()
    pq.write_table(pa.table({"a": [1]}), source / "foreign.parquet")
    with pytest.raises(pipeline.PipelineError, match="none of 1 files can be read as history"):
        pipeline.plan([source], out)
    cluster_day(source, "one", 1)
    assert len(pipeline.plan([source], out).quarantined) == 1


def test_a_notebook_shows_the_steps_of_a_plan(tmp_path: Path) -> None:
    cluster_day(tmp_path / "history", "<i>one", 1)
    shown = pipeline.plan([tmp_path / "history"], tmp_path / "out")._repr_html_()
    assert "<td>&lt;i&gt;one</td>" in shown
    assert shown.endswith("<p>rows: 1</p>")


def test_arguments_of_a_plan_are_checked(source: Path, out: Path) -> None:
    for inputs in (str(source), source):
        with pytest.raises(TypeError, match="inputs must be a list"):
            pipeline.plan(inputs, out)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="clusters must be a list of texts, not 5"):
        pipeline.plan([source], out, clusters=5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"clusters must be a list, such as \['one'\]"):
        pipeline.plan([source], out, clusters="one")
    for day in ("2026-11-1", "2026-02-30", "today", ""):
        with pytest.raises(ValueError, match="must be a day such as 2026-11-22"):
            pipeline.plan([source], out, since=day)
        with pytest.raises(ValueError, match="must be a day such as 2026-11-22"):
            pipeline.plan([source], out, until=day)
    with pytest.raises(ValueError, match="since must be a day such as"):
        pipeline.plan([source], out, since=date(2026, 11, 2))  # type: ignore[arg-type]
    for number in ("5", 0, 1.5, True):
        with pytest.raises(ValueError, match="flap_seconds must be a whole number from 1"):
            pipeline.plan([source], out, flap_seconds=number)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="timeout must be a number of seconds above 0"):
        pipeline.plan([source], out, timeout=0)
    plan = pipeline.plan([source], out)
    for workers in (-1, 0, True):
        with pytest.raises(ValueError, match="workers must be a whole number of at least 1"):
            pipeline.run(plan, workers=workers)
    assert not {"memory", "waiting"} & pipeline.run(plan).rows.keys()


@pytest.mark.parametrize("damage", ["rewritten", "cut"])
def test_a_copy_that_has_changed_is_made_anew_from_its_source(
    source: Path, out: Path, damage: str
) -> None:
    made(source, out)
    before = contents(out)
    copy = next(out.glob("bronze/*/*/changes-one.*.00000000000000000000-*"))
    good = copy.read_bytes()
    if damage == "cut":
        copy.write_bytes(good[:-9])
    else:
        rewrite(copy, with_column(copy, "unseen_us", 7))
    alone = pipeline.run(pipeline.plan([], out))
    assert str(copy) in {each.path for each in alone.plan.quarantined}
    assert [day for _, day in alone.plan.gone] == ["2026-11-01"]
    assert silver(out) == {n: c for n, c in before.items() if n.startswith("silver")}
    again = made(source, out)
    assert again.plan.quarantined == ()
    assert copy.read_bytes() == good
    assert {n: c for n, c in contents(out).items() if n != "input.parquet"} == {
        n: c for n, c in before.items() if n != "input.parquet"
    }


@pytest.mark.parametrize("how", ["moved", "touched", "without input.parquet"])
def test_a_copy_that_has_changed_is_noticed_also_if_its_last_look_is_not_known(
    source: Path, out: Path, tmp_path: Path, how: str
) -> None:
    made(source, out)
    before = contents(out)
    copy = next(out.glob("bronze/*/*/changes-one.*.00000000000000000000-*"))
    rewrite(copy, with_column(copy, "unseen_us", 7))
    if how == "moved":
        out = out.rename(tmp_path / "elsewhere")
    elif how == "touched":
        assert pipeline.run(pipeline.plan([], out)).plan.quarantined
        os.utime(copy)
    else:
        (out / "input.parquet").unlink()
    assert pipeline.plan([], out).tasks == ()
    assert made(source, out).plan.quarantined == ()
    assert pipeline.check(out) == []
    after = contents(out)
    del before["input.parquet"], after["input.parquet"]
    assert after == before


def test_the_tables_can_be_made_from_the_copies_alone(source: Path, out: Path) -> None:
    bronze = made(source, out, silver=False)
    assert (len(bronze.copied), bronze.made) == (2, [])
    shutil.rmtree(source)
    result = pipeline.run(pipeline.plan([], out))
    assert len(result.made) == len(TABLES)
    assert pipeline.check(out) == []


def test_one_file_twice_is_counted_as_a_duplicate(tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source / "a", "one", 1)
    shutil.copytree(source / "a", source / "b")
    result = made(source, out, in_place=True)
    assert sum(each.state == "duplicate" for each in result.plan.files) == 2
    made(source / "a", tmp_path / "fresh", in_place=True)
    assert silver(out) == silver(tmp_path / "fresh")


@pytest.mark.parametrize("in_place", [False, True])
def test_files_that_contradict_each_other_are_both_set_aside(
    tmp_path: Path, in_place: bool
) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source / "a", "one", 1)
    cluster_day(source / "a", "two", 1)
    first = next((source / "a").rglob("changes-one.*.00000000000000000000-*"))
    (source / "b").mkdir()
    table = pq.read_table(first)
    pq.write_table(table.slice(0, table.num_rows - 1), source / "b" / first.name)
    result = made(source, out, in_place=in_place)
    aside = {each.path: each.reason or "" for each in result.plan.quarantined}
    assert aside[str(first)] == f"contradicts {source / 'b' / first.name}"
    assert aside[str(source / "b" / first.name)] == f"contradicts {first}"
    assert set(rows(out, "observation")["cluster_id"].to_pylist()) == {"two"}
    (source / "b" / first.name).unlink()
    made(source, out, in_place=in_place)
    assert set(rows(out, "observation")["cluster_id"].to_pylist()) == {"one", "two"}


def test_a_copy_that_tables_were_made_of_stays_when_another_file_contradicts_it(
    tmp_path: Path,
) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source / "b", "one", 1)
    first = next((source / "b").rglob("changes-one.*.00000000000000000000-*"))
    made(source, out)
    before = rows(out, "partition_interval")
    (source / "a").mkdir()
    table = pq.read_table(first)
    pq.write_table(table.slice(0, table.num_rows - 1), source / "a" / first.name)
    (aside,) = made(source, out).plan.quarantined
    assert aside.path == str(source / "a" / first.name)
    assert str(aside.reason).startswith("it contradicts ")
    assert rows(out, "partition_interval").equals(before)


@pytest.mark.slow
@pytest.mark.usefixtures("by_day")
def test_several_processes_make_the_bytes_that_one_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempting, "_FEW_ROWS", 0)
    source = tmp_path / "history"
    for day in (1, 2, 3):
        cluster_day(source, "one", day)
    plan = pipeline.plan([source], tmp_path / "out")
    assert len(plan.tasks) == 3
    assert pipeline.run(plan, workers=2).rows["read"] == 39
    made(source, tmp_path / "fresh")
    assert silver(tmp_path / "out") == silver(tmp_path / "fresh")


@pytest.mark.usefixtures("by_day")
def test_a_worker_that_dies_ends_the_run_and_the_next_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempting, "_FEW_ROWS", 0)
    source, out = tmp_path / "history", tmp_path / "out"
    for day in (1, 2, 3):
        cluster_day(source, "one", day)

    with monkeypatch.context() as patch:
        patch.setattr(attempting, "_PROGRAM", "import os; os.kill(os.getpid(), 9)")
        with pytest.raises(pipeline.PipelineError, match="a worker process has died"):
            pipeline.run(pipeline.plan([source], out), workers=2)
    pipeline.run(pipeline.plan([source], out), workers=1)
    made(source, tmp_path / "fresh")
    assert silver(out) == silver(tmp_path / "fresh")
    assert pipeline.check(out) == []


def test_two_runs_of_one_process_are_not_mistaken_for_one(source: Path, out: Path) -> None:

    def inside(tasks: Sequence[AnyTask]) -> Iterator[Result | pipeline.BadFileError]:
        made(source, out)
        yield from map(attempt, tasks)

    with pytest.raises(pipeline.LockedError):
        pipeline.run(pipeline.plan([source], out), engine=inside)


def test_a_task_whose_run_has_lost_the_lock_gives_no_file_its_name(source: Path, out: Path) -> None:
    task = replace(pipeline.plan([source], out, in_place=True).tasks[0], token="of a dead run")
    with pytest.raises(pipeline.LockedError, match="another run has taken it over"):
        make(task)
    assert not [path for path in out.rglob("*") if path.is_file()]


def test_leftovers_of_a_process_that_was_lost_in_the_run_are_removed(
    source: Path, out: Path
) -> None:
    names = "silver/v1/change/.part-0-of-1.parquet", "bronze/cluster=one/.changes.parquet"
    left = [out / f"{name}.{'0' * 32}.tmp" for name in names]

    def losing(tasks: Sequence[AnyTask]) -> Iterator[Result | pipeline.BadFileError]:
        yield from map(attempt, tasks)
        for each in left:
            each.parent.mkdir(parents=True, exist_ok=True)
            each.write_bytes(b"cut")

    pipeline.run(pipeline.plan([source], out), engine=losing)
    assert not any(each.exists() for each in left)


@pytest.mark.slow
@pytest.mark.usefixtures("by_day")
def test_an_error_of_a_worker_is_raised_as_it_is(tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    for day in (1, 2):
        cluster_day(source, "one", day)
    tasks = pipeline.plan([source], out, in_place=True).tasks
    lost = [replace(task, token="of a dead run") for task in tasks]
    with pytest.raises(pipeline.LockedError, match="another run has taken it over"):
        list(attempting.made_by_processes(lost, 2))


@pytest.mark.slow
@pytest.mark.usefixtures("by_day")
def test_a_program_without_a_guard_can_run_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    for day in range(1, 61):
        cluster_day(source, f"cluster-{day}", 1, (1,), topics=1)
    program = tmp_path / "program.py"
    program.write_text(
        "from rdmeta import pipeline\n"
        f"print(len(pipeline.run(pipeline.plan([{str(source)!r}], {str(out)!r}), workers=2).made))"
    )
    done = subprocess.run(
        [sys.executable, str(program)],
        env=surroundings(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "480\n"


def test_a_day_whose_input_is_back_is_made_from_it_again(tmp_path: Path) -> None:
    source, out, away = tmp_path / "history", tmp_path / "out", tmp_path / "away"
    cluster_day(source / "day-1", "one", 1)
    cluster_day(source / "day-2", "one", 2)
    made(source, out, in_place=True)
    (source / "day-1").rename(away)
    assert made(source, out, in_place=True).plan.gone == (("one", "2026-11-01"),)
    cluster_day(source / "late", "one", 1, at=70_000)
    made(source, out, in_place=True)
    away.rename(source / "day-1")
    assert made(source, out, in_place=True).plan.gone == ()
    made(source, tmp_path / "fresh", in_place=True)
    assert silver(out) == silver(tmp_path / "fresh")


def test_the_table_of_inputs_says_which_files_are_gone(tmp_path: Path) -> None:
    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source / "a", "one", 1)
    cluster_day(source / "b", "one", 2)
    made(source, out, in_place=True)
    shutil.rmtree(source / "a")
    cluster_day(source / "c", "one", 3)
    made(source, out, in_place=True)
    found = pq.read_table(out / "input.parquet").to_pylist()
    states = {(row["name"].split("/")[0], row["state"]) for row in found}
    assert states == {("a", "gone"), ("b", "good"), ("c", "good")}


def test_the_files_of_a_folder_that_is_no_input_this_time_are_not_gone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for day, folder in enumerate("ab", 1):
        cluster_day(tmp_path / folder, "one", day)
        made(tmp_path / folder, out)
    found = pq.read_table(out / "input.parquet").to_pylist()
    assert "gone" not in {row["state"] for row in found}


def test_a_state_of_exactly_midnight_counts_for_the_day_that_begins(tmp_path: Path) -> None:
    clock = FakeClock()
    clock.now = FIRST_DAY
    cache = FakeCache(clock, "one")
    cache.add_topic("t", "A" * 22, [1])
    with Recorder(cache, tmp_path / "history", clock=clock) as recorder:
        recorder.observe()
        recorder.flush()
        clock.pass_seconds(30)
        cache.set_leader("t", 0, 2, 6)
        recorder.observe()
    made(tmp_path / "history", tmp_path / "out")
    found = rows(tmp_path / "out", "partition_interval").to_pylist()
    assert [(row["leader"], row["partial"]) for row in found] == [(1, False), (2, False)]


def test_a_copy_that_another_one_covers_may_be_removed(source: Path, out: Path) -> None:
    made(source, out)
    compact(source)
    first = next(source.rglob("*.parquet"))
    shutil.copy(first, out / "bronze/cluster=one/day=2026-11-01" / first.name)
    result = pipeline.run(pipeline.plan([], out))
    assert (result.plan.gone, result.plan.quarantined) == ((), ())
    tables = rows(out, "partition_interval")
    compact(out / "bronze")
    result = pipeline.run(pipeline.plan([], out))
    assert (result.plan.gone, result.plan.quarantined) == ((), ())
    assert rows(out, "partition_interval").equals(tables)
    (out / "bronze/.rdmeta-index.json").write_text("{}")  # a reader of history leaves it
    assert pipeline.check(out) == []


def test_the_table_of_inputs_has_a_bad_file_that_comes_alone(source: Path, out: Path) -> None:
    made(source, out)
    (source / "foreign.parquet").write_bytes(b"foreign")
    made(source, out)
    found = {row["name"]: row for row in pq.read_table(out / "input.parquet").to_pylist()}
    assert found["foreign.parquet"]["state"] == "quarantined"
    (source / "foreign.parquet").unlink()
    made(source, out)
    found = {row["name"]: row for row in pq.read_table(out / "input.parquet").to_pylist()}
    assert found["foreign.parquet"]["state"] == "gone"
    before = tree(out)
    made(source, out)
    assert tree(out) == before


def test_a_task_that_is_made_again_after_its_worker_died_counts_as_made(tmp_path: Path) -> None:
    """Spark makes a task again when an attempt was lost after its renames."""

    def made_twice(tasks: Sequence[AnyTask]) -> Iterator[Result | BadFileError]:
        for task in tasks:
            attempt(task)
            yield attempt(task)

    source, out = tmp_path / "history", tmp_path / "out"
    cluster_day(source, "one", 1)
    pipeline.run(pipeline.plan([source], out), workers=1)
    cluster_day(source, "one", 2, (3, 2))
    made = pipeline.run(pipeline.plan([source], out), engine=made_twice)
    assert (len(made.made), made.unchanged) == (len(TABLES), 0)
    assert pipeline.check(out) == []


@pytest.mark.parametrize(("taken_rows", "takes"), [(65_536, 1), (5, 3)])
def test_the_rows_of_many_small_files_are_taken_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken_rows: int, takes: int
) -> None:
    cluster_day(tmp_path / "history", "one", 1)
    assert len(list((tmp_path / "history").rglob("*.parquet"))) == 2
    made(tmp_path / "history", tmp_path / "before")
    taken: list[object] = []
    take = _DayMaker._take

    def counted(maker: _DayMaker, *args: Any) -> Any:
        taken.append(args)
        return take(maker, *args)

    monkeypatch.setattr(_DayMaker, "_take", counted)
    monkeypatch.setattr("rdmeta.pipeline.task._TAKEN", taken_rows)
    made(tmp_path / "history", tmp_path / "out")
    assert len(taken) == takes
    assert silver(tmp_path / "out") == silver(tmp_path / "before")


def test_ctrl_c_does_not_reach_a_worker_even_while_it_starts() -> None:
    """A terminal sends it to all processes; the first one ends the others, and says one line."""
    with attempting._started() as worker:
        status = Path(f"/proc/{worker.pid}/status").read_text()
        blocked = next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk"))
        assert int(blocked, 16) & 1 << signal.SIGINT - 1
        assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        worker.communicate()
    assert worker.returncode == 0
