"""Tables of random fleets, which the tests of measures share."""

from __future__ import annotations

import os
import time
from datetime import datetime, timezone
from pathlib import Path

import fleet
import pytest
from fleet import Fleet
from recorded import large_days

from rdmeta import pipeline

# `make nightly` takes many seeds. RDMETA_SEED=N runs one again.
SEEDS = int(os.environ.get("RDMETA_SEEDS", "3"))


@pytest.fixture(scope="session", params=range(SEEDS))
def out(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the tables of a random fleet whose history crosses the end of a month."""
    seed = int(os.environ.get("RDMETA_SEED", time.time_ns() % 10**9 + request.param))
    print(f"RDMETA_SEED={seed}")
    folder = tmp_path_factory.mktemp(f"gold-of-{seed}-")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fleet, "BEGIN", datetime(2026, 10, 30, 21, tzinfo=timezone.utc))
        if request.param % 2:
            large_days(patch)
        Fleet("one", folder / "history", seed)
        plan = pipeline.plan([folder / "history"], folder / "out", in_place=True, gold=True)
        pipeline.run(plan, workers=1)
    return folder / "out"
