"""The queries, run over silver as docs/measures.md says, give exactly the files of gold."""

from __future__ import annotations

import os
import re
import shutil
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
from logged_tables import made
from recorded import large_days

from rdmeta.pipeline.gold.measures import MEASURES, text_of

PAGE = Path(__file__).resolve().parents[3] / "docs/measures.md"
# The page shows these first: the SQL that every query needs, and the SQL that reads gold.
FIRST, *EXAMPLES = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
SEEDS = int(os.environ.get("RDMETA_SEEDS", "1"))
BEGIN = datetime(2026, 10, 30, 21, tzinfo=timezone.utc)
BAD = "changes-one.00000000-0000-4000-8000-000000000000.1-2.parquet"


@pytest.fixture(scope="module", params=range(SEEDS))
def made_once(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the history of two clusters over the end of a month, and its tables."""
    seed = int(os.environ.get("RDMETA_SEED", time.time_ns() % 10**9 + request.param))
    print(f"RDMETA_SEED={seed}")
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fleet.BEGIN", BEGIN)
        for number, name in enumerate(("one", "two")):
            Fleet(name, folder / "history", seed + number, hours=60)
        (folder / "history/cluster=one/day=2026-10-31" / BAD).write_bytes(b"no Parquet")
        if Random(seed).random() < 0.5:
            large_days(patch)
        made(folder / "history", folder / "tables", gold=True)
    return folder


@pytest.fixture
def folder(made_once: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns that folder as the working directory, as the page's queries have it."""
    monkeypatch.chdir(made_once)
    return made_once


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
    assert differences(folder, FIRST) == []


@pytest.mark.slow
def test_other_settings_give_the_files_that_are_made_with_them(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(folder / "tables", tmp_path / "tables")
    made(folder / "history", tmp_path / "tables", gold=True, min_isr=2, flap_seconds=3600)
    monkeypatch.chdir(tmp_path)
    other = re.sub(r"(?<=min_isr = )NULL(?=::)", "2", FIRST)
    other = re.sub(r"(?<=flap_us = )600000000(?=::)", "3600000000", other)
    assert other != FIRST
    assert differences(tmp_path, other) == []
    assert "risk_hour" in differences(tmp_path, FIRST)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_each_example_of_the_page_runs_over_gold() -> None:
    assert EXAMPLES
    with duckdb.connect() as connection:
        for example in EXAMPLES:
            connection.execute(example).fetchall()
