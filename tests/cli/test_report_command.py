"""`rdmeta report`: its forms, where it writes, and what it says of gold that cannot be shown."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import commands
import pyarrow.parquet as pq
import pytest
from small_disk import small_disk
from written_gold import BEGIN, covered, random_gold, write_gold

from rdmeta.pipeline.layout import gold_file
from rdmeta.pipeline.manifest import entry_of, read_manifest, write_manifest
from rdmeta.pipeline.store import Store
from rdmeta.report import gold_files

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gold(tmp_path_factory.mktemp("gold") / "out", random_gold(1), {"one": "shop"})


@pytest.fixture
def out(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "out"))


def run(*words: str | Path, code: int = 0) -> commands.Done:
    done = commands.run("report", *map(str, words))
    assert done.code == code, done.err
    assert done.err.count("\n") == (1 if code else 0)
    return done


def test_the_three_forms_go_to_stdout_or_into_a_file(out: Path, tmp_path: Path) -> None:
    model = commands.checked_json(run(out, "--format", "json", "--compare", "2026-10-28").out)
    assert [section["name"] for section in model["sections"]] == [
        *("fleet", "incidents", "topics", "brokers", "balance", "recovery", "changes", "not_seen")
    ]
    assert model["call"] == f"rdmeta report {out} --compare 2026-10-28"
    page = run(out, "--clusters", "shop").out
    assert page.startswith("<!doctype html>\n<html lang")
    assert page.rstrip().endswith("</html>")
    assert run(out, "--format", "md", "-o", tmp_path / "page.md").out == ""
    assert (tmp_path / "page.md").read_text().startswith("# 2 clusters, 2026-10-27 to")


def test_html_does_not_go_to_a_terminal(out: Path) -> None:
    with commands.Terminal("report", str(out)) as terminal:
        assert terminal.end() == 2
    wanted = "HTML does not go to a terminal: name a file with -o, or --format md"
    assert wanted in terminal.text


def test_an_unknown_cluster_and_an_empty_span_are_told_what_there_is(out: Path) -> None:
    has = "it has shop (2026-10-29 to 2026-11-02), two (2026-10-29 to 2026-11-02)"
    text = run(out, "--clusters", "shpo", code=2).err
    assert text == f"rdmeta: there is no cluster 'shpo' in {out}; {has}\n"
    text = run(out, "--since", "2027-01-01", "--until", "2027-01-03", code=2).err
    assert text == f"rdmeta: {out}: gold has no rows of 2027-01-01 to 2027-01-02; {has}\n"
    text = run(out, "--since", "2027-01-01", code=2).err
    assert text == f"rdmeta: there is no day from 2027-01-01 to before 2026-11-02; {has}\n"
    assert "at most 672 days" in run(out, "--since", "2020-01-01", code=2).err


def test_gold_of_another_version_or_damaged_is_named(out: Path) -> None:
    file = gold_file("incident", "one", "2026-10")
    content = (out / file).read_bytes()
    (out / file).write_bytes(content[:-9])
    wanted = f"rdmeta: {out}/{file}: it is damaged; run rdmeta pipeline check\n"
    assert run(out, code=2).err == wanted
    (out / file).unlink()
    assert run(out, code=2).err == wanted.replace("damaged", "missing")
    manifest = read_manifest(Store(out))
    manifest.files = {n.replace("gold/v1", "gold/v2"): f for n, f in manifest.files.items()}
    manifest.months = {}
    write_manifest(Store(out), manifest)
    text = run(out, code=2).err
    assert f"{out}: it has gold/v2, and this version of rdmeta reads gold/v1; run" in text


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_run_at_work_is_read_once_more_and_named(
    out: Path, monkeypatch: pytest.MonkeyPatch, is_made_anew: bool
) -> None:
    reads = 0
    rows = gold_files.GoldFiles.rows

    def changing(self: gold_files.GoldFiles, *arguments: object) -> object:
        nonlocal reads
        reads += 1
        if reads in ((1, 2) if is_made_anew else (1, 14)):  # as runs that end while gold is read
            files = read_manifest(Store(out))
            files.names["two"] = f"run {reads}"
            for name in files.files if is_made_anew else ():
                table = pq.read_table(out / name).replace_schema_metadata({"run": str(reads)})
                pq.write_table(table, out / name)
                files.files[name] = entry_of(Store(out), name)
            write_manifest(Store(out), files)
            if is_made_anew and reads == 2:
                (out / gold_file("incident", "two", "2026-10")).unlink()
        return rows(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(gold_files.GoldFiles, "rows", changing)
    model = json.loads(run(out, "--format", "json").out)
    assert model["is_run_at_work"] is True
    assert reads == (14 if is_made_anew else 26)


def test_a_full_disk_leaves_the_old_page(out: Path, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 32 << 10) as disk:
        page = disk / "page.html"
        page.write_text("old")
        done = run(out, "-o", page, code=2)
        assert done.err == f"rdmeta: {page}: No space left on device\n"
        assert [each.name for each in disk.iterdir()] == ["page.html"]
        assert page.read_text() == "old"


def test_an_incident_of_the_month_before_counts(tmp_path: Path) -> None:
    begin = BEGIN + timedelta(days=1)
    row = {"cluster_id": "one", "kind": "leaderless", "began_at": begin, "minutes": 9.0, "most": 1}
    row |= {"partitions": 1, "topics": 1, "broker": 2, "censored": False}
    row["ended_at"] = begin + timedelta(days=3, minutes=1)
    rows = {"coverage_hour": covered("one", 24 * 5), "incident": [row]}
    out = write_gold(tmp_path / "out", rows)
    assert pq.read_metadata(out / gold_file("incident", "one", "2026-10")).num_rows == 1
    words = run(out, "--since", "2026-11-02", "--until", "2026-11-03", "--format", "md").out
    assert "from 2026-10-30 00:00:00 on, 1 partition of 1 topic was without a leader" in words
    assert "No topic was seen at risk" in words
    none = run(out, "--since", "2026-11-02", "--format", "json", "--clusters", "one")
    assert json.loads(none.out)["sections"][0]["parts"][0]["rows"][0]["incidents"] == 1
