"""The golden metadata logs can be made anew on Apache Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest
from kraft_logs import DIVERGED, LOGS, Made, kinds_missing, make, make_diverged
from real_kafka import missing

from rdmeta.kraft import find_nodes, findings_of, looked_at, proof_of


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.parametrize("made", LOGS, ids=lambda made: str(made.name))
def test_a_golden_log_is_made_anew(made: Made, tmp_path: Path) -> None:
    if reason := missing(made.version):
        pytest.skip(reason)
    make(made, tmp_path)
    assert kinds_missing(made, tmp_path) == []


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_the_tail_that_never_was_is_made_anew(tmp_path: Path) -> None:
    if reason := missing(DIVERGED.version):
        pytest.skip(reason)
    make_diverged(tmp_path)
    logs = [looked_at(each) for each in find_nodes([tmp_path])]
    (finding,) = findings_of(logs)
    assert "never committed" in finding.text
    assert not finding.is_serious
    assert proof_of(logs).end > min(log.scan.end for log in logs)
