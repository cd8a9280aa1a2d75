"""What tables of Delta and of Iceberg have in common: readers, other programs, vacuum."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from logged_tables import SILVER, assert_same_rows, iceberg_table, made, rows_by_reader
from recorded import cluster_day, contents, tree

from rdmeta import pipeline
from rdmeta.pipeline.committing import EVERY_TABLE, LoggedTable
from rdmeta.pipeline.delta import DeltaLogs
from rdmeta.pipeline.gold.column_comments import COMMENTS
from rdmeta.pipeline.gold.measures import MEASURES
from rdmeta.pipeline.iceberg import IcebergLogs
from rdmeta.pipeline.layout import CATALOG, LAYOUT, StoredName
from rdmeta.pipeline.manifest import Manifest
from rdmeta.pipeline.running import _Runner

deltalake = pytest.importorskip("deltalake", reason="the extra delta is not installed")
pytest.importorskip("pyiceberg.catalog.sql", reason="the extra iceberg is not installed")

INTERVALS = SILVER[0]


class Tables(NamedTuple):
    """A history, and tables of one kind that were made of it."""

    kind: str
    source: Path
    out: Path

    def opened(self, table: LoggedTable = INTERVALS) -> Any:
        if self.kind == "delta":
            return deltalake.DeltaTable(self.out / table.folder)
        return iceberg_table(self.out, table)

    def versions(self) -> list[int]:
        """Returns how many commits each table has."""
        if self.kind == "delta":
            return [self.opened(table).version() + 1 for table in SILVER]
        return [len(self.opened(table).snapshots()) for table in SILVER]

    def comments(self, table: LoggedTable) -> dict[str, str]:
        """Returns what the table says of its columns, and no more than DESCRIBE shows."""
        fields = self.opened(table).schema().fields
        if self.kind == "delta":
            return {each.name: each.metadata.get("comment") for each in fields}
        return {each.name: each.doc for each in fields}

    def append(self, rows: int) -> None:
        """Adds rows to the intervals, as another program does."""
        table = self.opened()
        if self.kind == "delta":
            deltalake.write_deltalake(table, table.to_pyarrow_table().slice(0, rows), mode="append")
        else:
            table.append(table.scan().to_arrow().slice(0, rows))

    def files(self) -> set[str]:
        """Returns the names of all files of tables."""
        return {name for name in contents(self.out) if StoredName.parse(name) is not None}


@pytest.fixture(params=["delta", pytest.param("iceberg", marks=pytest.mark.slow)])
def given(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    """A history of one day, and tables of it."""
    found = Tables(request.param, tmp_path / "history", tmp_path / "out")
    cluster_day(found.source, "one", 1)
    cluster_day(found.source, "a/b %", 1)
    made(found.source, found.out, tables=found.kind)
    return found


@pytest.mark.slow
def test_each_reader_sees_the_rows_of_a_folder(given: Tables, tmp_path: Path) -> None:
    cluster_day(given.source, "one", 2)
    made(given.source, given.out, gold=True)
    made(given.source, tmp_path / "folder", gold=True)
    assert_same_rows(given.out, tmp_path / "folder", EVERY_TABLE)
    for name in MEASURES:
        found = given.comments(LoggedTable("gold", name))
        assert found == {**COMMENTS[name], "month": None}
    assert pipeline.check(given.out) == []
    seen = tree(given.out)
    made(given.source, given.out, gold=True)
    assert tree(given.out) == seen


def test_rows_of_another_program_are_named_or_taken_out(given: Tables) -> None:
    wanted = rows_by_reader(given.out, INTERVALS)
    given.append(3)
    seen = {name: each for name, each in tree(given.out).items() if "catalog" not in name}
    by = {"delta": r"version 1 \(WRITE by delta-rs", "iceberg": r"snapshot \d+ \(append\) wrote 1"}
    with pytest.raises(pipeline.PipelineError, match=by[given.kind]) as caught:
        made(given.source, given.out)
    assert "--overwrite-foreign" in str(caught.value)
    assert {n: each for n, each in tree(given.out).items() if "catalog" not in n} == seen
    made(given.source, given.out, overwrite_foreign=True)
    assert rows_by_reader(given.out, INTERVALS) == wanted
    versions = given.versions()
    made(given.source, given.out)
    assert given.versions() == versions
    given.opened().delete("cluster_id = 'one'")
    made(given.source, given.out)
    assert rows_by_reader(given.out, INTERVALS) == wanted
    assert pipeline.check(given.out) == []


def test_the_loser_of_two_commits_plans_again(
    given: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_day(given.source, "one", 2)
    logs: Any = DeltaLogs if given.kind == "delta" else IcebergLogs
    commit, count = logs.commit, 0

    def beaten(self: Any, *arguments: Any) -> None:
        nonlocal count
        count += 1
        if count == 2:  # another program deletes a cluster just before
            given.opened(SILVER[1]).delete("cluster_id = 'one'")
        commit(self, *arguments)

    monkeypatch.setattr(logs, "commit", beaten)
    made(given.source, given.out)
    made(given.source, tmp_path / "folder")
    assert given.versions() == [2, 3, *[2] * (len(SILVER) - 2)]
    assert_same_rows(given.out, tmp_path / "folder", SILVER[:2])


def test_a_run_that_finds_another_kind_before_its_commit_commits_nothing(
    given: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stores have no lock, so two first runs may begin a folder with tables of two kinds."""
    cluster_day(given.source, "one", 2)
    versions, manifest = given.versions(), _Runner.manifest
    other = {"delta": "iceberg", "iceberg": "delta"}[given.kind]

    def beaten(self: Any) -> Manifest:
        layout = given.out / LAYOUT
        layout.write_text(layout.read_text().replace(given.kind, other))
        return manifest(self)

    monkeypatch.setattr(_Runner, "manifest", beaten)
    with pytest.raises(pipeline.PipelineError, match=f"makes tables of the kind {other} there"):
        made(given.source, given.out)
    assert given.versions() == versions


@pytest.mark.slow
def test_a_file_that_a_vacuum_removes_before_the_commit_is_made_again(
    given: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stores have no lock, so a run may take up a file that a vacuum there is about to remove."""
    cluster_day(given.source, "one", 2)
    commit, removed = _Runner.commit, list[Path]()

    def beaten(self: Any, manifest: Manifest, run_id: str) -> None:
        if not removed:
            stored = [each.stored for each in manifest.files.values() if each.stored]
            removed.extend(given.out / name for name in stored if name not in before)
            removed[-1].unlink()
        commit(self, manifest, run_id)

    before = given.files()
    monkeypatch.setattr(_Runner, "commit", beaten)
    made(given.source, given.out)
    made(given.source, tmp_path / "folder")
    assert removed[-1].exists()
    assert_same_rows(given.out, tmp_path / "folder", SILVER)
    assert pipeline.check(given.out) == []


def test_vacuum_removes_what_only_older_versions_have(given: Tables) -> None:
    first = given.files()
    cluster_day(given.source, "a/b %", 2)
    made(given.source, given.out)
    both, wanted = given.files(), rows_by_reader(given.out, INTERVALS)
    assert pipeline.vacuum(given.out, "7d").files == ()
    would = pipeline.vacuum(given.out, "0h", dry_run=True)
    assert given.files() == both
    assert pipeline.vacuum(given.out, "0h") == would
    removed = both - given.files()
    assert removed == {name for name in would.files if StoredName.parse(name) is not None} < first
    assert len(removed) == len(SILVER)
    assert rows_by_reader(given.out, INTERVALS) == wanted
    assert given.kind == "delta" or len(given.opened().snapshots()) == 1
    assert pipeline.check(given.out) == []
    # A vacuum of Iceberg is a commit, too, which leaves the metadata before it.
    assert given.kind == "iceberg" or pipeline.vacuum(given.out, "0h").files == ()


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@pytest.mark.parametrize("sign", "#%?")
def test_a_path_that_readers_take_for_a_url_is_refused(
    tmp_path: Path, kind: str, sign: str
) -> None:
    cluster_day(tmp_path / "history", "one", 1)
    out = tmp_path / f"a{sign}b" / "out"
    with pytest.raises(pipeline.PipelineError, match=f"below a path with '[{sign}]'"):
        pipeline.plan([tmp_path / "history"], out, tables=kind)
    assert not out.parent.exists()


def test_vacuum_removes_nothing_of_a_table_whose_log_is_gone(given: Tables) -> None:
    cluster_day(given.source, "one", 2)  # so that vacuum has something to remove
    made(given.source, given.out)
    wanted = rows_by_reader(given.out, SILVER[1])
    if given.kind == "delta":
        shutil.rmtree(given.out / SILVER[1].folder / "_delta_log")
    else:
        (given.out / CATALOG).unlink()
    seen = tree(given.out)
    with pytest.raises(pipeline.PipelineError, match="_interval: the log of this table is gone"):
        pipeline.vacuum(given.out, "0h")
    assert tree(given.out) == seen
    made(given.source, given.out)
    assert rows_by_reader(given.out, SILVER[1]) == wanted


def test_vacuum_spares_what_another_program_took_out_of_a_table(given: Tables) -> None:
    """The next run puts it back, as the manifest has it."""
    wanted = rows_by_reader(given.out, INTERVALS)
    given.opened().delete("cluster_id = 'one'")
    assert not [each for each in pipeline.vacuum(given.out, "0h").files if each.endswith("parquet")]
    made(given.source, given.out)
    assert rows_by_reader(given.out, INTERVALS) == wanted
