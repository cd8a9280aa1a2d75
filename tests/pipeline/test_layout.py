"""Names in an output folder are safe, and a folder of another version is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rdmeta.pipeline import PipelineError
from rdmeta.pipeline.layout import (
    Parts,
    TableKind,
    bronze_file,
    choose_parts,
    gold_file,
    period_of,
    read_kind,
    read_layout,
    table_file,
    write_layout,
)
from rdmeta.pipeline.store import Store


@pytest.mark.parametrize("cluster_id", ["_odd/../id%2F", "..", "a=b&c {x}*", "cluster.é"])
def test_a_cluster_id_stays_in_one_folder(cluster_id: str) -> None:
    names = [
        table_file("change", cluster_id, "2026-11", 0, 1),
        bronze_file(cluster_id, "2026-11-01", "x.parquet"),
        gold_file("incident", cluster_id, "2026-11"),
    ]
    depths = [len(name.split("/")) for name in names]
    assert depths == [6, 4, 5]
    assert not any(part in {"", ".", ".."} for name in names for part in name.split("/"))


def test_a_small_cluster_has_a_part_for_a_month_and_a_large_day_has_several() -> None:
    assert choose_parts([]) == Parts("month", 1)
    assert choose_parts([19_999] * 3) == Parts("month", 1)
    assert choose_parts([20_000] * 3) == Parts("day", 1)
    assert choose_parts([10_000_000, 10_000_001]) == Parts("day", 2)
    assert period_of("2026-11-22", Parts("month", 1)) == "2026-11"
    assert period_of("2026-11-22", Parts("day", 2)) == "2026-11-22"


def test_a_folder_keeps_the_parts_of_its_clusters(tmp_path: Path) -> None:
    out = Store(tmp_path)
    assert read_layout(out) == {}
    parts = {"one": Parts("day", 3), "two": Parts("month", 1)}
    write_layout(out, parts)
    assert read_layout(out) == parts
    before = tmp_path.joinpath("layout.json").stat().st_ino
    write_layout(out, dict(reversed(parts.items())))
    assert tmp_path.joinpath("layout.json").stat().st_ino == before


@pytest.mark.parametrize(
    ("values", "shown"),
    [({"layout": 2}, "layout 2 with silver v1"), ({"silver": 3}, "layout 1 with silver v3")],
)
def test_a_folder_of_another_version_is_refused_with_both(
    tmp_path: Path, values: dict[str, int], shown: str
) -> None:
    write_layout(Store(tmp_path), {})
    path = tmp_path / "layout.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    with pytest.raises(
        PipelineError, match=f"it has {shown}, and .* makes layout 1 with silver v1"
    ):
        read_layout(Store(tmp_path))


def test_a_folder_keeps_the_kind_of_its_tables(tmp_path: Path) -> None:
    out = Store(tmp_path)
    write_layout(out, {}, TableKind("delta"))
    for kind in (TableKind(), TableKind("iceberg", "lake")):
        with pytest.raises(PipelineError, match="another run makes tables of the kind delta there"):
            write_layout(out, {}, kind)
    assert read_kind(out) == TableKind("delta")


@pytest.mark.parametrize("name", ["_made_from/cluster-a.json", "leader_change/cluster-a.parquet"])
def test_a_folder_of_the_layout_before_this_is_refused(tmp_path: Path, name: str) -> None:
    Store(tmp_path).put(name, b"")
    with pytest.raises(PipelineError, match=r"of layout 0, .* makes layout 1: name a new folder"):
        read_layout(Store(tmp_path))


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"layout": "x"}', b"\xff"])
def test_a_damaged_layout_is_an_error(tmp_path: Path, text: bytes) -> None:
    Store(tmp_path).put("layout.json", text)
    with pytest.raises(PipelineError, match="layout.json: it is damaged"):
        read_layout(Store(tmp_path))


def test_tables_without_their_layout_are_refused(tmp_path: Path) -> None:
    Store(tmp_path).put("silver/v2/change/x.parquet", b"")
    with pytest.raises(PipelineError, match=r"silver/v2/change/x.parquet, but no layout.json"):
        read_layout(Store(tmp_path))
