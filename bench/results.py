"""Reads and writes bench/results.json: rows of several programs in one file.

A row says which program measured it (`run`: "bench" or "peers"), on what `machine`, of which
`commit` and when (`measured_at`). It may be older than its neighbours: no program drops the rows
of another one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.build import ROOT

Row = dict[str, Any]

RESULTS = ROOT / "bench" / "results.json"


def digits(value: object) -> str:
    """Writes a number with three significant digits; "-" if it is no float."""
    if not isinstance(value, float):
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def commit_of(row: Row) -> str:
    """Returns the commit of a row, in words where the tree had changes that no commit has."""
    commit, changed, _ = str(row["commit"]).partition("-dirty")
    return f"`{commit}`" + (" and uncommitted changes" if changed else "")


def load(path: Path) -> list[Row]:
    """Returns the rows of a file, or none without a file."""
    if not path.exists():
        return []
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def signed(rows: Sequence[Row], run: str, machine: dict[str, object]) -> list[Row]:
    """Returns the rows with their program, machine, commit and time."""
    where = f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}"
    mark = {"run": run, "machine": where}
    return [{**row, **mark, **{k: machine[k] for k in ("commit", "measured_at")}} for row in rows]


def merge(old: Sequence[Row], new: Sequence[Row], run: str, known: Sequence[str]) -> list[Row]:
    """Returns `old` with the rows of `run` brought up to date.

    A new row replaces the row of its name. A row that `run` did not measure this time stays. It
    goes if its name is not in `known`: that figure no longer exists.
    """
    fresh = {row["name"]: row for row in new}
    others = [row for row in old if row.get("run", "bench") != run]
    mine = {row["name"]: row for row in old if row.get("run", "bench") == run}
    kept = {**mine, **fresh}
    return others + [kept[name] for name in known if name in kept]


def write(path: Path, new: Sequence[Row], run: str, known: Sequence[str]) -> None:
    """Merges rows into the file, which has one a line: a run changes only the lines of its rows."""
    rows = merge(load(path), new, run, known)
    lines = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
