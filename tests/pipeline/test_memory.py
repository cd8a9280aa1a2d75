"""A run over hostile files takes memory in proportion to their rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import commands
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from history_files import record, rewrite

# The largest of the processes that a run starts, in bytes, and the run's exit code.
PROGRAM = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(code, 1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
BASE, TIMES = 64 << 20, 8

Row = dict[str, Any]


def peak(source: Path, out: Path) -> int:
    words = commands.command("pipeline", "silver", str(source), str(out), "--engine", "local", "-q")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True
    )
    code, size = map(int, done.stdout.split()[-2:])
    assert code in (0, 2), done.stderr
    return size


def partitions(row: Row) -> list[Row]:
    high = {"kind": "topic_added", "partition": 1_048_575, "new_leader": 1}
    return [{**row, **high, "topic": f"t{n}"} for n in range(3000)]


def lists(row: Row) -> list[Row]:
    ids = {"kind": "isr_changed", "topic": "orders", "partition": 0}
    return [{**row, **ids, "new_isr": [*range(n, n + 65_000)]} for n in range(60)]


def zeros(row: Row) -> list[Row]:
    """Lists that a file holds in a few bytes."""
    ids = {"kind": "isr_changed", "topic": "orders", "partition": 0}
    return [{**row, **ids, "old_isr": [0] * 65_000} for _ in range(400)]


def texts(row: Row) -> list[Row]:
    return [
        {**row, "kind": "config_changed", "topic": "orders", "detail": f"{n}={'x' * 1_000_000}"}
        for n in range(24)
    ]


def brokers(row: Row) -> list[Row]:
    gone = ({"kind": "broker_added", "detail": "h:1 rack=a"}, {"kind": "broker_removed"})
    return [{**row, **kind, "broker": n, "topic": None} for n in range(20_000) for kind in gone]


def equal(row: Row) -> list[Row]:
    return [row] * 400_000


def repeated(row: Row) -> list[Row]:
    """Rows of intervals that each repeat long lists."""
    ids = {"kind": "topic_added", "topic": "orders", "partition": 0, "new_isr": [*range(65_000)]}
    moves = {"kind": "leader_changed", "topic": "orders", "partition": 0}
    return [{**row, **ids}] + [
        {**row, **moves, "version": 2 + n, "new_leader": n % 3, "new_leader_epoch": n}
        for n in range(1500)
    ]


def racks(row: Row) -> list[Row]:
    """Records that each end the intervals of all partitions."""
    topic = {"kind": "topic_added", "topic": "orders", "new_leader": 1, "new_isr": [1, 2]}
    added = [{**row, **topic, "partition": n, "new_replicas": [1, 2]} for n in range(10_000)]
    moved = {"kind": "broker_changed", "broker": 1, "topic": None}
    return added + [
        {**row, **moved, "version": 2 + n, "detail": f"h:1 rack={'ab'[n % 2]}"} for n in range(150)
    ]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "hostile", [partitions, lists, zeros, texts, brokers, equal, repeated, racks]
)
def test_memory_is_in_proportion_to_the_uncompressed_rows(
    tmp_path: Path, hostile: Callable[[Row], list[Row]]
) -> None:
    source = tmp_path / "history"
    path = record(source)[1]
    empty = peak(source, tmp_path / "empty")
    rows = pq.read_table(path, partitioning=None)
    last = rows.to_pylist()[0]
    more = pa.Table.from_pylist(hostile(last), schema=rows.schema)
    table = pa.concat_tables([rows.slice(0, 1), more, rows.slice(1)])
    rewrite(path, table)
    assert peak(source, tmp_path / "out") - empty <= BASE + TIMES * table.nbytes
