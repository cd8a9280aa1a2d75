"""The queries, run over silver as docs/measures.md says, give exactly the files of gold."""

from __future__ import annotations

import os
import re
import time
from datetime import datetime, timezone
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fleet import Fleet
from recorded import large_days

from rdmeta import pipeline
from rdmeta.pipeline.gold.measures import MEASURES, text_of

PAGE = Path(__file__).resolve().parents[3] / "docs/measures.md"
# The page shows these first: the SQL that every query needs, and the SQL that reads gold.
FIRST, *EXAMPLES = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
SEEDS = int(os.environ.get("RDMETA_SEEDS", "1"))
BEGIN = datetime(2026, 10, 30, 21, tzinfo=timezone.utc)
BAD = "changes-one.00000000-0000-4000-8000-000000000000.1-2.parquet"


@pytest.fixture(params=range(SEEDS))
def seed(request: pytest.FixtureRequest) -> int:
    found = int(os.environ.get("RDMETA_SEED", time.time_ns() % 10**9 + request.param))
    print(f"RDMETA_SEED={found}")
    return found


@pytest.fixture
def folder(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a folder with the history of two clusters over the end of a month."""
    monkeypatch.setattr("fleet.BEGIN", BEGIN)
    for number, name in enumerate(("one", "two")):
        Fleet(name, tmp_path / "history", seed + number, hours=60)
    (tmp_path / "history/cluster=one/day=2026-10-31" / BAD).write_bytes(b"no Parquet")
    if Random(seed).random() < 0.5:
        large_days(monkeypatch)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(folder: Path, **settings: Any) -> None:
    plan = pipeline.plan([folder / "history"], folder / "tables", gold=True, **settings)
    pipeline.run(plan, workers=1)


def gold(folder: Path, name: str) -> pa.Table:
    """Returns the files of a measure as one table."""
    paths = sorted((folder / f"tables/gold/v1/{name}").rglob("*.parquet"))
    assert {path.stem for path in paths} == {"month=2026-10", "month=2026-11"}
    return pa.concat_tables(pq.ParquetFile(path).read() for path in paths)


def ordered(rows: pa.Table) -> list[str]:
    found: list[dict[str, Any]] = rows.to_pylist()
    return sorted(str(row) for row in found)


def differences(folder: Path, statements: str) -> list[str]:
    """Returns the measures whose query gives other rows than the files have."""
    found = []
    with duckdb.connect() as connection:
        connection.execute(statements)
        connection.execute(text_of("prelude"))
        for name, measure in MEASURES.items():
            rows = connection.sql(text_of(name)).to_arrow_table()
            schema = measure.schema
            if ordered(rows.select(schema.names).cast(schema)) != ordered(gold(folder, name)):
                found.append(name)
    return found


@pytest.mark.slow
def test_each_query_gives_exactly_the_files(folder: Path) -> None:
    made(folder)
    assert differences(folder, FIRST) == []


@pytest.mark.slow
def test_other_settings_give_the_files_that_are_made_with_them(folder: Path) -> None:
    made(folder, min_isr=2, flap_seconds=3600)
    other = re.sub(r"(?<=min_isr = )NULL(?=::)", "2", FIRST)
    other = re.sub(r"(?<=flap_us = )600000000(?=::)", "3600000000", other)
    assert other != FIRST
    assert differences(folder, other) == []
    assert "risk_hour" in differences(folder, FIRST)


@pytest.mark.slow
def test_each_example_of_the_page_runs_over_gold(folder: Path) -> None:
    made(folder)
    assert EXAMPLES
    with duckdb.connect() as connection:
        for example in EXAMPLES:
            connection.execute(example).fetchall()
