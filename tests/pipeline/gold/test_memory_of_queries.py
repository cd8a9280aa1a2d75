"""A query in DuckDB has its share of what its process may have, and not of the whole host."""

from __future__ import annotations

import resource
from contextlib import closing
from pathlib import Path

import pytest

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
