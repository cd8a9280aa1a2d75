"""The golden metadata logs can be made anew on Apache Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest
from kraft_logs import LOGS, Made, kinds_missing, make
from real_kafka import missing


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.parametrize("made", LOGS, ids=lambda made: str(made.name))
def test_a_golden_log_is_made_anew(made: Made, tmp_path: Path) -> None:
    if reason := missing(made.version):
        pytest.skip(reason)
    make(made, tmp_path)
    assert kinds_missing(made, tmp_path) == []
