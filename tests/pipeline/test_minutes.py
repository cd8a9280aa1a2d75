"""`leader_minutes` of one more day follows from sums and the new part, and says the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recorded import cluster_day, large_days

from rdmeta import pipeline
from rdmeta.pipeline import minutes
from rdmeta.pipeline.place import Place

MINUTES = "leader_minutes/cluster=one.parquet"
SUMS = "silver/v1/_state/cluster=one/leader_sums.state"


@pytest.fixture(autouse=True)
def by_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets each day be a part."""
    large_days(monkeypatch)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the names of the parts that leader_minutes is made from, as they are read."""
    found: list[str] = []

    class Watched(Place):
        def opened(self, name: str) -> Any:
            found.append(name)
            return super().opened(name)

    draft = minutes.draft_leader_minutes

    def watched(out: Place, *rest: Any) -> Any:
        return draft(Watched(out.where), *rest)

    monkeypatch.setattr("rdmeta.pipeline.running.draft_leader_minutes", watched)
    return found


def make(source: Path, out: Path) -> None:
    pipeline.run(pipeline.plan([source], out, in_place=True), workers=1)


def made_of(tmp_path: Path, days: int) -> tuple[Path, Path]:
    """Makes the tables of so many days; returns the history and the output folder."""
    source, out = tmp_path / "history", tmp_path / "out"
    for day in range(1, days + 1):
        cluster_day(source, "one", day, (day % 3 + 1, 2))
    make(source, out)
    return source, out


def test_one_more_day_reads_the_sums_and_the_new_part(tmp_path: Path, read: list[str]) -> None:
    source, out = made_of(tmp_path, 5)
    assert len(read) == 6  # five parts; no sums are there
    read.clear()
    cluster_day(source, "one", 6)
    make(source, out)
    assert [name.split("/")[-2] for name in read] == ["cluster=one", "period=2026-11-06"]
    make(source, tmp_path / "fresh")
    for name in (MINUTES, SUMS):
        assert (out / name).read_bytes() == (tmp_path / "fresh" / name).read_bytes()
    assert pipeline.check(out) == []


def test_a_day_that_differs_takes_no_sums(tmp_path: Path) -> None:
    source, out = made_of(tmp_path, 5)
    before = (out / MINUTES).read_bytes()
    cluster_day(source, "one", 2, (1, 3), at=50_000)
    make(source, out)
    make(source, tmp_path / "fresh")
    assert (out / MINUTES).read_bytes() == (tmp_path / "fresh" / MINUTES).read_bytes() != before


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign"])
def test_damaged_sums_count_as_none(tmp_path: Path, damage: str, read: list[str]) -> None:
    source, out = made_of(tmp_path, 5)
    content = bytearray((out / SUMS).read_bytes())
    if damage == "cut":
        del content[-9:]
    elif damage == "flipped":
        content[60] ^= 1
    else:
        content = bytearray((out / MINUTES).read_bytes())
    (out / SUMS).write_bytes(content)
    read.clear()
    cluster_day(source, "one", 6)
    make(source, out)
    assert len(read) == 7
    make(source, tmp_path / "fresh")
    assert (out / MINUTES).read_bytes() == (tmp_path / "fresh" / MINUTES).read_bytes()


def test_few_parts_have_no_sums(tmp_path: Path) -> None:
    _, out = made_of(tmp_path, 3)
    assert (out / MINUTES).exists()
    assert not (out / SUMS).exists()
