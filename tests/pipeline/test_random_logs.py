"""Silver of random metadata logs is that of a naive walk over their recordings."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from kraft_cluster import random_node
from silver_model import INTERVALS, made_silver, model_silver

import rdmeta
from rdmeta import pipeline
from rdmeta.generate.logs import Log
from rdmeta.kraft import KraftLog

BEFORE_MIDNIGHT_MS = 1_700_006_394_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 13, 14, 16, 30])
def test_silver_of_a_random_log_is_that_of_a_walk_and_ends_in_the_log_s_state(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kraft_random.Log", partial(Log, time_ms=BEFORE_MIDNIGHT_MS))
    (tmp_path / "log").mkdir()
    random_node(tmp_path / "log", seed, cut=seed % 2)
    log = KraftLog(tmp_path / "log", cluster_id="c")
    files = rdmeta.kraft.record(log, tmp_path / "in")
    for rows in (pq.read_table(file).to_pylist() for file in files[1:]):
        begin = {row["kind"] for row in rows if row["version"] == rows[0]["version"]}
        assert "controller_changed" in begin or seed % 2  # its begin is lost
    pipeline.run(pipeline.plan([tmp_path / "in"], tmp_path / "out", in_place=True), workers=1)
    silver, model = made_silver(tmp_path / "out", "c"), model_silver(tmp_path / "in", "c")
    for table in model:
        assert sorted(map(repr, silver[table])) == sorted(map(repr, model[table])), table
    pieces = [piece for table in INTERVALS for piece in silver[table]]
    end = max(piece[3] for piece in pieces)
    last = {piece[0]: piece[1] for piece in pieces if (piece[3], piece[5]) == (end, "gap")}
    state = log.state(min(log.proven, log.end))
    assert {key[1]: said[3:] for key, said in last.items() if key[0] == "broker"} == {
        id: (broker.fenced, broker.shutting_down) for id, broker in state.brokers.items()
    }
    for key, said in last.items():
        if key[0] == "partition":
            found = state.partition(*key[1:])
            assert found is not None
            lists = (found.isr, found.adding, found.removing, found.elr)
            assert (said[1], said[3], *said[8:]) == (
                found.leader, *(tuple(sorted(each)) for each in lists),
            )  # fmt: skip
