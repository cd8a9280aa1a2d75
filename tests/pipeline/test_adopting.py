"""What a run made before it was killed stays, also if its input is gone before the next one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest
from recorded import cluster_day, contents, large_days

from rdmeta import pipeline
from rdmeta.pipeline import running


class KilledError(Exception):
    """Ends a run where a kill would."""


def made(source: Path, out: Path, **options: Any) -> pipeline.Made:
    return pipeline.run(pipeline.plan([source], out, in_place=True, **options), workers=1)


def silver(out: Path) -> dict[str, bytes]:
    return {name: c for name, c in contents(out).items() if name.startswith("silver")}


def killed(*_: object) -> NoReturn:
    raise KilledError


@pytest.fixture(params=["month", "day"])
def days(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A history of three days; tables of the first two are there, by month or by day."""
    if request.param == "day":
        large_days(monkeypatch)
    source = tmp_path / "history"
    for day in (1, 2):
        cluster_day(source / f"day-{day}", "one", day)
    made(source, tmp_path / "out")
    cluster_day(source / "day-3", "one", 3)
    return source


@pytest.mark.parametrize("options", [{}, {"until": "2026-11-02"}])
def test_a_day_without_a_manifest_stays_when_its_input_is_gone(
    days: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str]
) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    with monkeypatch.context() as patch:
        patch.setattr(running, "write_manifest", killed)
        with pytest.raises(KilledError):
            made(days, out)
    made(days, whole)
    (days / "day-3").rename(tmp_path / "away")
    again = made(days, out, **options)
    assert again.plan.gone == (() if options else (("one", "2026-11-03"),))
    assert silver(out) == silver(whole)
    assert pipeline.check(out) == []
    assert made(days, out).plan.gone == (("one", "2026-11-03"),)
    (tmp_path / "away").rename(days / "day-3")
    assert made(days, out).plan.gone == ()
    assert contents(out) == contents(whole)


def test_a_day_that_only_some_tables_have_is_removed_when_its_input_is_gone(
    days: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    before = silver(out)
    replace, renames = os.replace, 0

    def third(source: Path, target: Path) -> None:
        nonlocal renames
        if "silver" in str(target):
            renames += 1
            if renames == 3:
                raise KilledError
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", third)
        with pytest.raises(KilledError):
            made(days, out)
    assert silver(out) != before
    shutil.rmtree(days / "day-3")
    assert made(days, out).plan.gone == ()
    assert silver(out) == before
    assert pipeline.check(out) == []


def test_days_whose_input_is_gone_stay_when_the_manifest_is_lost(
    days: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    made(days, out)
    before = silver(out)
    shutil.rmtree(days / "day-1")
    (out / "manifest.json").unlink()
    assert made(days, out).plan.gone == (("one", "2026-11-01"),)
    assert silver(out) == before
    assert pipeline.check(out) == []


def test_a_run_looks_at_the_parts_that_stay_only_if_the_run_before_did_not_end_well(
    days: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    cluster_day(days / "day-3", "two", 3)
    pipeline.run(pipeline.plan([days], out), workers=1)
    cluster_day(days / "day-4", "two", 4)
    again = pipeline.run(pipeline.plan([days], out), workers=1)
    assert {task.cluster_id for task in again.plan.tasks} <= {"two"}
