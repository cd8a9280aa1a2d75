"""Tables of Delta: one commit each and run, whole for each reader, also after a kill."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from logged_tables import SILVER, made, rows_by_reader, rows_of_folder
from recorded import cluster_day, contents, large_days, tree

from rdmeta import pipeline
from rdmeta.errors import MissingExtraError
from rdmeta.pipeline import layout
from rdmeta.pipeline.committing import LoggedTable
from rdmeta.pipeline.layout import StoredName

deltalake = pytest.importorskip("deltalake", reason="the extra delta is not installed")

INTERVALS = LoggedTable("silver", "partition_interval")


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A history of one day, and Delta tables of it."""
    root = tmp_path_factory.mktemp("delta")
    cluster_day(root / "history", "one", 1)
    cluster_day(root / "history", "a/b %", 1)
    made(root / "history", root / "out", tables="delta")
    return root / "history", root / "out"


@pytest.fixture
def copied(before: tuple[Path, Path], tmp_path: Path) -> tuple[Path, Path]:
    """A copy of these that a test may change."""
    source, out = tmp_path / "history", tmp_path / "out"
    shutil.copytree(before[0], source)
    shutil.copytree(before[1], out)
    return source, out


def opened(out: Path, table: LoggedTable = INTERVALS) -> Any:
    return deltalake.DeltaTable(out / table.folder)


def tables(out: Path) -> set[str]:
    """Returns the names of all files of tables."""
    return {name for name in contents(out) if StoredName.parse(name) is not None}


def versions(out: Path) -> list[int]:
    return [opened(out, table).version() for table in SILVER]


def test_a_run_is_one_commit_to_each_table(copied: tuple[Path, Path]) -> None:
    source, out = copied
    assert versions(out) == [0] * len(SILVER)
    old = rows_by_reader(out, INTERVALS)["delta-rs"]
    cluster_day(source, "one", 2)
    made(source, out)
    assert versions(out) == [1] * len(SILVER)
    last = [opened(out, table).history(1)[0] for table in SILVER]
    assert len({each["rdmeta.run"] for each in last}) == 1
    (stored,) = (name for name in opened(out).file_uris() if "cluster_id=one" in name)
    digest = StoredName.parse(stored.removeprefix(f"{out}/"))
    assert digest is not None
    assert json.loads(last[0]["rdmeta.made_from"]) == {"one": {"2026-11": digest.digest}}
    assert len(rows_by_reader(out, INTERVALS)["delta-rs"]) > len(old)
    table = opened(out)
    table.load_as_version(0)
    assert table.to_pyarrow_table().num_rows == len(old)
    assert pipeline.check(out) == []


def test_a_second_run_changes_nothing(copied: tuple[Path, Path]) -> None:
    source, out = copied
    made(source, out)  # its input lies elsewhere than that of the copy
    seen = tree(out)
    again = made(source, out, tables="delta")
    assert (again.made, again.copied) == ([], [])
    assert tree(out) == seen


@pytest.mark.parametrize("kind", ["folder", "delta"])
def test_a_folder_keeps_the_kind_that_it_began_with(
    copied: tuple[Path, Path], tmp_path: Path, kind: str
) -> None:
    source, out = copied
    if kind == "folder":
        out = tmp_path / "folder"
        made(source, out)
    seen = tree(out)
    other = {"folder": "delta", "delta": "folder"}[kind]
    with pytest.raises(pipeline.PipelineError, match=f"of the kind {kind}, not {other}"):
        pipeline.plan([source], out, tables=other)
    assert tree(out) == seen


def test_a_table_that_rdmeta_did_not_make_stays_as_it_is(tmp_path: Path) -> None:
    import pyarrow as pa

    cluster_day(tmp_path / "history", "one", 1)
    out = tmp_path / "out"
    deltalake.write_deltalake(out / INTERVALS.folder, pa.table({"x": [1]}))
    (out / "layout.json").write_text(
        '{"layout": 2, "silver": 1, "tables": "delta", "clusters": {}}\n'
    )
    seen = tree(out)
    with pytest.raises(pipeline.PipelineError, match="rdmeta did not make the Delta table"):
        pipeline.plan([tmp_path / "history"], out)
    assert tree(out) == seen


@pytest.mark.parametrize("how", ["deleted", "rewritten", "restored", "vacuumed"])
def test_files_that_another_program_took_away_come_back(
    copied: tuple[Path, Path], how: str
) -> None:
    source, out = copied
    if how == "restored":
        cluster_day(source, "one", 2)
        made(source, out)
    wanted = rows_by_reader(out, INTERVALS)
    table = opened(out)
    if how == "restored":
        table.restore(0)
    elif how == "rewritten":
        table.delete("topic = 'topic-0'")
    else:
        table.delete("cluster_id = 'one'")
    if how == "vacuumed":
        table.vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    made(source, out, overwrite_foreign=how == "rewritten")
    assert rows_by_reader(out, INTERVALS) == wanted
    assert pipeline.check(out) == []


@pytest.mark.parametrize("how", ["added", "stored", "append", "feature"])
def test_a_table_that_another_program_made_otherwise_is_refused(
    copied: tuple[Path, Path], how: str
) -> None:
    source, out = copied
    why = "given it delta.appendOnly, and delta-rs cannot commit to it"
    if how == "added":
        text = deltalake.schema.PrimitiveType("string")
        opened(out).alter.add_columns([deltalake.Field("more", text)])
        why = "changed its columns"
    elif how == "append":
        opened(out).alter.set_table_properties({"delta.appendOnly": "true"})
    elif how == "stored":  # as of a column that was dropped, and added again under its name
        (about,) = (each["metaData"] for each in logged(out) if "metaData" in each)
        about["schemaString"] = about["schemaString"].replace(
            '"name":"leader","type":"integer","nullable":true,"metadata":{',
            '"name":"leader","type":"integer","nullable":true,"metadata":'
            '{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"col-1"',
        )
        log_next(out, {"metaData": about})
        why = "changed its columns"
    else:
        features = ["appendOnly", "invariants", "domainMetadata", "rowTracking"]
        protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
        log_next(out, {"protocol": protocol})
        why = "given it domainMetadata, rowTracking, and delta-rs cannot commit to it"
    cluster_day(source, "one", 2)
    seen = tree(out)
    with pytest.raises(pipeline.PipelineError, match=f"another program has {why}"):
        made(source, out)
    assert tree(out) == seen


def logged(out: Path) -> list[dict[str, Any]]:
    """Returns the actions of the first version of the intervals."""
    log = out / INTERVALS.folder / "_delta_log" / f"{0:020}.json"
    return [json.loads(line) for line in log.read_text().splitlines()]


def log_next(out: Path, *actions: dict[str, Any]) -> None:
    """Writes the second version of the intervals, as another program does."""
    log = out / INTERVALS.folder / "_delta_log" / f"{1:020}.json"
    log.write_text("".join(f"{json.dumps(each)}\n" for each in actions))


def test_a_table_whose_rows_a_deletion_vector_deletes_is_refused(
    copied: tuple[Path, Path],
) -> None:
    source, out = copied
    add = next(each["add"] for each in logged(out) if "add" in each)
    rows = {"storageType": "i", "sizeInBytes": 36, "cardinality": 2}  # the protocol's own example
    rows["pathOrInlineDv"] = "^Bg9^0rr910000000000iXQKl0rr91000315c8Xg00031"
    feature, gone = ["deletionVectors"], {"deletionTimestamp": 1, "dataChange": True}
    protocol = {"readerFeatures": feature, "writerFeatures": feature}
    log_next(
        out,
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **protocol}},
        {"remove": {"path": add["path"], "partitionValues": add["partitionValues"], **gone}},
        {"add": {**add, "deletionVector": rows}},
    )
    seen = tree(out)
    with pytest.raises(pipeline.PipelineError, match="deleted rows of 1 files by deletion vectors"):
        made(source, out, overwrite_foreign=True)
    assert tree(out) == seen
    opened(out).restore(0, protocol_downgrade_allowed=True)
    made(source, out)
    assert pipeline.check(out) == []


@pytest.mark.slow
def test_a_killed_run_whose_input_is_gone_leaves_whole_days(
    copied: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A day that a run has committed to some tables only is in none after the next one."""
    from rdmeta.pipeline.delta import DeltaLogs

    source, out = copied
    wanted = {table: rows_by_reader(out, table) for table in SILVER}
    late = source.with_name("late")
    cluster_day(late, "one", 2)
    commit, count = DeltaLogs.commit, 0

    def stopped(self: DeltaLogs, *arguments: Any) -> None:
        nonlocal count
        count += 1
        if count == 3:
            raise KeyboardInterrupt
        commit(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(DeltaLogs, "commit", stopped)
        with pytest.raises(KeyboardInterrupt):
            pipeline.run(pipeline.plan([source, late], out, in_place=True), workers=1)
    made(source, out, in_place=True)
    assert {table: rows_by_reader(out, table) for table in SILVER} == wanted
    assert pipeline.check(out) == []


def test_the_manifest_follows_from_the_logs(copied: tuple[Path, Path]) -> None:
    source, out = copied
    made(source, out)
    seen = contents(out)
    (out / layout.MANIFEST).unlink()
    shutil.rmtree(out / layout.MANIFEST_PARTS)
    made(source, out)
    assert contents(out) == seen


def test_vacuum_leaves_what_a_dead_run_has_made(copied: tuple[Path, Path]) -> None:
    out = copied[1]
    (out / "lock").write_text("")
    with pytest.raises(pipeline.PipelineError, match="did not end well: run it again first"):
        pipeline.vacuum(out, "0h")
    made(*copied)
    with pytest.raises(ValueError, match="such as 7d, not '7 days'"):
        pipeline.vacuum(out, "7 days")


def test_without_the_extra_the_error_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_day(tmp_path / "history", "one", 1)
    for package, extra in (("deltalake", "delta"), ("pyiceberg", "iceberg")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtraError, match=rf"--tables {extra} needs .*\[{extra}\]"):
            pipeline.plan([tmp_path / "history"], tmp_path / "out", tables=extra)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_cluster_of_days_and_parts_is_in_place_after_a_dead_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its manifest is lost: days and parts are those that the names of files tell."""
    large_days(monkeypatch)
    monkeypatch.setattr(layout, "_PART_ROWS", 6)
    source, out = tmp_path / "history", tmp_path / "out"
    for day in (1, 2):
        cluster_day(source, "one", day, topics=3)
    made(source, out, tables="delta")
    assert len(tables(out)) == 2 * (len(SILVER) + (len(SILVER) - 3) * 2)  # 3 parts a day
    (out / layout.MANIFEST).unlink()
    shutil.rmtree(out / layout.MANIFEST_PARTS)
    (out / layout.LAYOUT).write_text(
        '{"layout": 2, "silver": 1, "tables": "delta", "clusters": {}}\n'
    )
    monkeypatch.undo()
    cluster_day(source, "one", 3)
    assert {file.name.split("period=")[1][:10] for file in made(source, out).made} == {"2026-11-03"}
    made(source, tmp_path / "folder")
    for table in SILVER:
        seen = rows_by_reader(out, table)
        assert seen["delta-rs"] == seen["polars"]
        assert {*seen["polars"]} == {*rows_of_folder(tmp_path / "folder", table)}
    assert versions(out) == [1] * len(SILVER)
