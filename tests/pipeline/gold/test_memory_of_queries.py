"""A query in DuckDB has its share of what its process may have, and not of the whole host."""

from __future__ import annotations

import resource
from contextlib import closing
from pathlib import Path

import pytest
from recorded import cluster_day, contents

from rdmeta import pipeline
from rdmeta.pipeline.gold import query


def limit_of_queries() -> object:
    with closing(query.connected()) as connection:
        ((limit,),) = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    return limit


def test_the_limit_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(query, "_OF_CONTAINER", (tmp_path / "missing", limit))
    limit.write_text("max\n")
    without = limit_of_queries()
    limit.write_text(f"{1 << 30}\n")
    assert limit_of_queries() == "614.0 MiB" != without


def test_the_limit_of_a_python_worker_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda what: (1 << 29, 1 << 30))
    assert limit_of_queries() == "307.0 MiB"


def test_processes_beyond_the_cpus_work_in_turn_and_share_no_memory() -> None:
    assert [query.Room(1 << 30, 2).at_a_time(beside) for beside in (1, 2, 5)] == [1, 2, 2]


def test_a_month_that_needs_more_memory_says_what_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_day(tmp_path / "history", "one", 1)
    out = tmp_path / "out"
    pipeline.run(pipeline.plan([tmp_path / "history"], out, in_place=True), workers=1)
    before = contents(out)
    plan = pipeline.plan([tmp_path / "history"], out, in_place=True, gold=True)
    monkeypatch.setattr(query, "room_here", lambda: query.Room(4 << 20, 1))
    with pytest.raises(
        pipeline.PipelineError, match=r"too little memory or disk .* one: .*--engine"
    ):
        pipeline.run(plan, workers=1)
    assert contents(out) == {**before, "lock": b'{"failed": true}\n'}
    monkeypatch.undo()
    plan = pipeline.plan([tmp_path / "history"], out, in_place=True, gold=True)
    assert pipeline.run(plan, workers=1).made
