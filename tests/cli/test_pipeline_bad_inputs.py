"""`rdmeta pipeline` and bad inputs: the message, the exit code, JSON, and what goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from fake_cache import FakeCache, FakeClock
from recorded import cluster_day, contents, tree

from rdmeta.history import Recorder


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("recorded")
    for cluster in ("one", "two"):
        cluster_day(directory, cluster, 1)
    return directory


@pytest.fixture
def source(recorded: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(recorded, tmp_path / "history"))


@pytest.fixture(scope="module")
def silver_of_two(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Returns what is made of cluster two alone."""
    out = tmp_path_factory.mktemp("whole")
    run("silver", recorded / "cluster=two", out)
    return silver_of(out, "two")


def run(*words: str | Path, code: int = 0) -> commands.Done:
    done = commands.run("pipeline", *map(str, words), "--engine", "local")
    assert done.code == code, done.err
    return done


def run_json(*words: str | Path, code: int = 0) -> Any:
    return commands.checked_json(run(*words, "--json", code=code).out)


def _rewrite(path: Path, **entries: str) -> None:
    table = pq.ParquetFile(path).read()
    new = {f"rdmeta.{key}".encode(): value.encode() for key, value in entries.items()}
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, **new}), path)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _foreign(path: Path) -> None:
    pq.write_table(pq.ParquetFile(path).read().replace_schema_metadata(None), path)


def _pages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4:600] = b"\xff" * 596
    path.write_bytes(content)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _contradicted(path: Path) -> None:
    copy = path.parents[2] / "copy" / path.name
    copy.parent.mkdir()
    shutil.copy(path, copy)
    _rewrite(copy, name="another")


FIRST = "the recording's first file, with the whole state, is missing; put it back"

# Each damages the first of two files of cluster one. The number is that of the files set aside.
DAMAGES: dict[str, tuple[Callable[[Path], object], int, str]] = {
    "cut": (_cut, 2, "not a whole Parquet file: "),
    "empty": (lambda path: path.write_bytes(b""), 2, "not a whole Parquet file: "),
    "foreign": (_foreign, 2, "its metadata does not say that rdmeta wrote it"),
    "pages": (_pages, 2, "not a whole Parquet file: "),
    "other name": (
        lambda path: path.rename(path.with_name("rows.parquet")),
        2,
        "not a history file: the name is not changes-",
    ),
    "later format": (
        lambda path: _rewrite(path, format="2"),
        2,
        "its format is 2, this version of rdmeta reads format 1",
    ),
    "wrong name": (
        lambda path: path.rename(str(path).replace("3.parquet", "4.parquet")),
        2,
        "its metadata says that it is changes-one.",
    ),
    "missing": (Path.unlink, 1, FIRST),
    "folder": (_folder, 2, "a folder, not a file"),
    "contradicted": (_contradicted, 3, "contradicts "),
}


@pytest.fixture
def first(source: Path) -> Path:
    return sorted((source / "cluster=one").rglob("*.parquet"))[0]


def silver_of(out: Path, cluster: str) -> dict[str, bytes]:
    return {name: c for name, c in contents(out / "silver").items() if f"cluster={cluster}" in name}


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "count", "reason"), DAMAGES.values(), ids=DAMAGES)
def test_a_bad_file_is_named_fails_a_strict_run_and_all_else_is_made(
    damage: Callable[[Path], object],
    count: int,
    reason: str,
    source: Path,
    first: Path,
    silver_of_two: dict[str, bytes],
    tmp_path: Path,
) -> None:
    damage(first)
    out = tmp_path / "out"
    found = run_json("all", source, out, "--strict", code=1)
    faults = {fault["path"]: fault["reason"] for fault in found["faults"]}
    assert found["quarantined"] == len(found["faults"]) == len(faults) == count
    assert any(text.startswith(reason) for text in faults.values())
    assert not silver_of(out, "one")
    assert silver_of(out, "two") == silver_of_two
    assert run_json("check", out)["faults"] == []


@pytest.mark.slow
def test_each_action_names_a_cut_file_on_stderr_unless_quiet(
    source: Path, first: Path, tmp_path: Path
) -> None:
    _cut(first)
    for action in ("bronze", "silver", "all"):
        said = run(action, source, tmp_path / action).err
        assert f"rdmeta: {first}: quarantined: not a whole Parquet file: " in said
        assert len(said.splitlines()) == 2
        assert run(action, source, tmp_path / action, "--quiet").err == ""
    dry = run_json("all", source, tmp_path / "new", "--dry-run", "--strict", code=1)
    assert dry["faults"][0]["path"] == str(first)


def test_input_of_foreign_files_alone_fails_also_a_quiet_run(
    first: Path, source: Path, tmp_path: Path
) -> None:
    for path in source.rglob("*.parquet"):
        _foreign(path)
    for more in ((), ("--quiet",), ("--json",)):
        done = run("all", source, tmp_path / "out", *more, code=2)
        assert done.out == ""
        assert done.err.startswith(f"rdmeta: {first}: ")
        assert "none of 4 files can be read as history: give a folder that" in done.err
    assert not (tmp_path / "out").exists()


def test_many_bad_files_are_a_page_of_lines_and_all_are_in_json(
    source: Path, tmp_path: Path
) -> None:
    for number in range(25):
        (source / f"{number}.parquet").write_bytes(b"")
    said = run("bronze", source, tmp_path / "out").err.splitlines()
    assert len(said) == 21
    assert said[-1] == "rdmeta: and 5 more; --json lists all of them"
    assert len(run_json("bronze", source, tmp_path / "out")["faults"]) == 25


def test_one_file_twice_is_counted_and_no_fault(source: Path, first: Path, tmp_path: Path) -> None:
    (source / "copy").mkdir()
    shutil.copy(first, source / "copy")
    found = run_json("silver", source, tmp_path / "out", "--strict")
    assert (found["read"], found["skipped"], found["faults"]) == (4, 1, [])


def _replaced(name: str, old: str, new: str) -> Callable[[Path], object]:
    """Returns what replaces a part of a file of an output folder."""
    return lambda out: (out / name).write_text((out / name).read_text().replace(old, new))


def _older(out: Path) -> None:
    shutil.rmtree(out)
    (out / "partition_interval").mkdir(parents=True)
    (out / "partition_interval/x.parquet").write_bytes(b"")


LOCKED = '{"host": "elsewhere", "pid": 7, "processes": "x"}'
REFUSED: list[tuple[Callable[[Path], object], str]] = [
    (
        _replaced("layout.json", '"layout": 1', '"layout": 7'),
        "it has layout 7 with silver v1, and this version of rdmeta makes layout 1",
    ),
    (
        _replaced("layout.json", '"silver": 1', '"silver": 3'),
        "it has layout 1 with silver v3, and this version of rdmeta makes layout 1",
    ),
    (
        _replaced("manifest.json", '"manifest":2', '"manifest":9'),
        "its version is 9, and this version of rdmeta reads 2",
    ),
    (
        lambda out: (out / "layout.json").unlink(),
        "but no layout.json: restore it, or name a new folder",
    ),
    (lambda out: (out / "layout.json").write_text("{"), "it is damaged: "),
    (_older, "of layout 0, which `python -m rdmeta.spark` made"),
    (
        lambda out: (out / "lock").write_text(LOCKED),
        "process 7 on elsewhere works on it; if that process has ended, remove ",
    ),
]


@pytest.mark.slow
def test_an_output_folder_of_another_version_or_run_is_refused_and_left_as_it_is(
    source: Path, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    run("all", source, made)
    for number, (change, said) in enumerate(REFUSED):
        out = tmp_path / f"out-{number}"
        shutil.copytree(made, out)
        change(out)
        before = tree(out)
        done = run("all", source, out, "--json", "--strict", code=2)
        assert done.out == ""
        assert len(done.err.splitlines()) == 1
        assert done.err.startswith(f"rdmeta: {out}")
        assert said in done.err
        assert tree(out) == before


IDS = (
    *("a b", "a/b", "..", ".", "../../x", "%", "%2e%2e", "a=b", "*?[", "{c}", "cluster=z"),
    *("new\nline", "a\\b", '"', "ünï☃", "-x", "a.b", "_x", "x" * 100),
)


@pytest.mark.slow
def test_odd_cluster_ids_stay_in_the_folder_and_come_back_as_they_were(tmp_path: Path) -> None:
    source, out = tmp_path / "a/b/history", tmp_path / "a/b/out"
    for cluster_id in IDS:
        cluster_day(source, cluster_id, 1, (1, 2), topics=1)
    found = run_json("all", source, out, "--strict")
    assert found["copied"] == 2 * len(IDS)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.parent in out.parents) == [
        *("a", "b", "history", "out")
    ]
    for table in ("partition_interval", "observation"):
        folder = out / "silver/v1" / table
        columns = ["cluster_id", "cluster"]
        rows = ds.dataset(folder, partitioning="hive").to_table(columns=columns)
        assert set(rows["cluster_id"].to_pylist()) == set(IDS)
        assert rows["cluster"].cast("string").to_pylist() == rows["cluster_id"].to_pylist()
        query = f"select cluster_id, cluster from read_parquet('{folder}/**/*.parquet')"  # noqa: S608
        found_rows = duckdb.sql(query)
        assert found_rows is not None
        by_duckdb = found_rows.fetchall()
        assert {one for one, _ in by_duckdb} == set(IDS)
        assert all(one == other for one, other in by_duckdb)
    assert run_json("all", source, out)["made"] == 0
    assert run_json("check", out)["faults"] == []
    text = run("all", source, tmp_path / "dry", "--dry-run").out
    assert len(text.splitlines()) == 2 * len(IDS) + 2 * len(IDS) + 3  # no id breaks a line


def test_the_longest_names_of_topics_come_back(tmp_path: Path) -> None:

    clock = FakeClock()
    cache = FakeCache(clock, "one")
    names = ["t" * 249, "." * 249, "a.b_c-d", "_", "0"]
    for name in names:
        cache.add_topic(name, None, [1])
    with Recorder(cache, tmp_path / "history", clock=clock) as recorder:
        recorder.observe()
        clock.pass_seconds(5)
        recorder.observe()
    run("silver", tmp_path / "history", tmp_path / "out", "--strict")
    rows = ds.dataset(tmp_path / "out/silver/v1/topic_interval").to_table(columns=["topic"])
    assert sorted(rows["topic"].to_pylist()) == sorted(names)
