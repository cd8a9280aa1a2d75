"""Tables of random fleets, which the tests of measures share."""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from pathlib import Path

import fleet
import gold_model
import pyarrow as pa
import pytest
from fleet import Fleet
from gold_tables import silver_of
from recorded import large_days

from rdmeta import pipeline

# `make test` takes one seed, `make nightly` many. RDMETA_SEED=N runs one again.
SEEDS = [
    pytest.param(number, marks=[pytest.mark.slow] if number else [])
    for number in range(int(os.environ.get("RDMETA_SEEDS", "2")))
]


@pytest.fixture(scope="session", params=SEEDS)
def seed(request: pytest.FixtureRequest) -> int:
    found = int(os.environ.get("RDMETA_SEED", time.time_ns() % 10**9 + request.param))
    print(f"RDMETA_SEED={found}")
    return found


@pytest.fixture(scope="session", params=SEEDS)
def out(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the tables of a random fleet whose history crosses the end of a month."""
    seed = int(os.environ.get("RDMETA_SEED", time.time_ns() % 10**9 + request.param))
    print(f"RDMETA_SEED={seed}")
    folder = tmp_path_factory.mktemp(f"gold-of-{seed}-")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet, "BEGIN", datetime(2026, 10, 30, 21, tzinfo=timezone.utc))
        if seed % 2:
            large_days(patch)
        Fleet("one", folder / "history", seed)
        plan = pipeline.plan([folder / "history"], folder / "out", in_place=True, gold=True)
        pipeline.run(plan, workers=1)
    return folder / "out"


@pytest.fixture(scope="session")
def silver(out: Path) -> dict[str, pa.Table]:
    return silver_of(out)


@pytest.fixture(scope="session")
def model(silver: dict[str, pa.Table]) -> gold_model.Silver:
    """Returns the rows of silver as the naive walks take them."""
    return {table: gold_model.with_times(rows.to_pylist()) for table, rows in silver.items()}
