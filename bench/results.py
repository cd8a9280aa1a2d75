"""bench/results.json: rows of several programs in one file, and none drops another's.

A row says which program measured it (`run`: "bench" or "peers"), on what `machine`, of which
`commit` and when (`measured_at`), for it may be older than its neighbours.
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
    """Three digits that matter; "-" for what is no float."""
    if not isinstance(value, float):
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def load(path: Path) -> list[Row]:
    """The rows of a file; none where there is no file."""
    if not path.exists():
        return []
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8"))
    return rows


def signed(rows: Sequence[Row], run: str, machine: dict[str, object]) -> list[Row]:
    """The rows with who measured them, where and when."""
    where = f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}"
    mark = {"run": run, "machine": where}
    return [{**row, **mark, **{k: machine[k] for k in ("commit", "measured_at")}} for row in rows]


def merge(old: Sequence[Row], new: Sequence[Row], run: str, known: Sequence[str]) -> list[Row]:
    """`old` with the rows of `run` brought up to date.

    A new row takes the place of the one of its name. What `run` did not measure this time stays,
    unless its name is not one of `known`: then it is a figure that is no more.
    """
    fresh = {row["name"]: row for row in new}
    others = [row for row in old if row.get("run", "bench") != run]
    mine = {row["name"]: row for row in old if row.get("run", "bench") == run}
    kept = {**mine, **fresh}
    return others + [kept[name] for name in known if name in kept]


def write(path: Path, new: Sequence[Row], run: str, known: Sequence[str]) -> None:
    """Merge into the file."""
    rows = merge(load(path), new, run, known)
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
