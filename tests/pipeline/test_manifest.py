"""The manifest is cut by cluster and month, and each state that a kill leaves can be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recorded import cluster_day, contents, large_days, tree

from rdmeta import pipeline
from rdmeta.pipeline.manifest import (
    DayRecord,
    FileEntry,
    Manifest,
    read_digests,
    read_manifest,
    write_manifest,
)
from rdmeta.pipeline.store import Store

ID = 'a/b "c}, d'
FOLDER = "cluster=a%2Fb%20%22c%7D%2C%20d"


def manifest() -> Manifest:
    kept = FileEntry(1, 2, "0" * 64)
    return Manifest(
        {ID: {f"2026-{month}": DayRecord("d", {"o": 3}) for month in ("10-31", "11-01", "11-02")}},
        {
            f"bronze/{FOLDER}/day=2026-10-31/x.parquet": kept,
            f"silver/v1/change/{FOLDER}/period=2026-11/part-0-of-1.parquet": kept,
            f"silver/v1/change/{FOLDER}/period=2026-11-02/part-0-of-1.parquet": kept,
            f"gold/v1/incident/{FOLDER}/month=2026-11.parquet": kept,
        },
        {ID: "prod}, 1"},
    )


def test_a_cluster_has_a_part_for_each_month(tmp_path: Path) -> None:
    out = Store(tmp_path)
    assert read_manifest(out) == Manifest()
    assert read_digests(out) is None
    write_manifest(out, manifest())
    parts = [f"manifest/{FOLDER}/2026-10.json", f"manifest/{FOLDER}/2026-11.json"]
    assert sorted(contents(tmp_path)) == ["manifest.json", *parts]
    assert read_manifest(out) == manifest()
    assert sorted(read_digests(out) or {}) == parts
    november = json.loads((tmp_path / parts[1]).read_text())
    assert (len(november["days"][ID]), len(november["files"])) == (2, 3)


def test_only_parts_that_differ_are_written(tmp_path: Path) -> None:
    out, said = Store(tmp_path), manifest()
    write_manifest(out, said)
    before = tree(tmp_path)
    write_manifest(out, manifest())
    assert tree(tmp_path) == before
    said.days[ID]["2026-11-03"] = DayRecord("d", {}, is_gone=True)
    write_manifest(out, said)
    after = tree(tmp_path)
    written = {name for name in after if after[name] != before[name]}
    assert written == {"manifest.json", f"manifest/{FOLDER}/2026-11.json"}
    assert read_manifest(out) == said


def test_a_part_that_a_killed_run_wrote_is_read_as_it_is(tmp_path: Path) -> None:
    out, said = Store(tmp_path), manifest()
    write_manifest(out, said)
    before = (tmp_path / "manifest.json").read_bytes()
    said.days[ID]["2026-11-03"] = DayRecord("d", {})
    write_manifest(out, said)
    after = contents(tmp_path)
    (tmp_path / "manifest.json").write_bytes(before)
    assert read_manifest(out) == said
    write_manifest(out, said)
    assert contents(tmp_path) == after


@pytest.mark.parametrize("name", ["manifest.json", f"manifest/{FOLDER}/2026-11.json"])
@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, "it is missing; restore it, or remove manifest.json and run again if no input"),
        (b"", "it is damaged: "),
        (b"[]", "it is damaged: "),
        (b'{"manifest": 2}', "it is damaged: 'files'"),
        (b'{"manifest": 2, "files": {"x": {"rows": 1}}}', "it is damaged: "),
        (b'{"manifest": 1}', "its version is 1, and this version of rdmeta reads 2: name a new"),
    ],
)
def test_a_damaged_part_is_an_error_that_names_it(
    tmp_path: Path, name: str, text: bytes | None, error: str
) -> None:
    out = Store(tmp_path)
    write_manifest(out, manifest())
    if text is not None:
        (tmp_path / name).write_bytes(text)
    elif name == "manifest.json":
        (tmp_path / name).unlink()
        assert read_manifest(out) == Manifest()
        return
    else:
        (tmp_path / name).unlink()
    with pytest.raises(pipeline.PipelineError, match=f"{name.rpartition('/')[2]}: {error}"):
        read_manifest(out)


def test_one_more_day_writes_the_part_of_its_month_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large_days(monkeypatch)
    source, out = tmp_path / "in", tmp_path / "out"
    for day in (1, 2, 33):
        cluster_day(source, "one", day)
        cluster_day(source, "two", day)
    pipeline.run(pipeline.plan([source], out))
    before = tree(out)
    cluster_day(source, "two", 34)
    pipeline.run(pipeline.plan([source], out))
    after = tree(out)
    written = {name for name in after if name not in before or after[name] != before[name]}
    assert {name for name in written if "manifest" in name} == {
        "manifest.json",
        "manifest/cluster=two/2026-12.json",
    }
    assert pipeline.check(out) == []
    part = out / "manifest/cluster=one/2026-11.json"
    part.write_bytes(part.read_bytes().replace(b'"rows":', b'"rows": '))
    (out / "manifest/cluster=one/2026-10.json").write_bytes(b"{}")
    assert [(each.path, each.reason) for each in pipeline.check(out)] == [
        (str(part), "its digest differs from that in manifest.json"),
        (f"{out}/manifest/cluster=one/2026-10.json", "the manifest does not have it"),
    ]
