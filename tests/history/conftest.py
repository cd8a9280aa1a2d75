"""The cache that tests of recording observe; a module that uses it has the fixture `cache`."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_cache import FakeCache, FakeClock, Observed


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def seen(cache: FakeCache, clock: FakeClock, tmp_path: Path) -> Observed:
    return Observed(cache, clock, tmp_path)
