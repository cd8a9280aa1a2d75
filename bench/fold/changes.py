"""Writes a recording of 10 000 partitions that change their leader or ISR at random, as Parquet."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rdmeta.history.schema import CHANGE_SCHEMA

TOPICS, PARTITIONS, BROKERS = 1_000, 10, 12
START_US = 1_764_547_200_000_000
SESSION = "6f1d3a2e-0000-4000-8000-000000000001"
_CHUNK = 1_000_000


def write(path: str | os.PathLike[str], changes: int, seed: int = 1) -> None:
    """Writes the baseline and so many changes."""
    random = np.random.default_rng(seed)
    with pq.ParquetWriter(path, CHANGE_SCHEMA) as writer:
        writer.write_table(_baseline())
        epochs = np.zeros(TOPICS * PARTITIONS, np.int32)
        for first in range(0, changes, _CHUNK):
            count = min(_CHUNK, changes - first)
            writer.write_table(_changes(random, first, count, epochs))


def _table(rows: int, columns: dict[str, Any]) -> pa.Table:
    given = {"cluster_id": _same("cluster", rows), "session": _same(SESSION, rows)}
    given |= {"source": _same("poll", rows), **columns}
    arrays = [
        given[field.name].cast(field.type) if field.name in given else pa.nulls(rows, field.type)
        for field in CHANGE_SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=CHANGE_SCHEMA)


def _same(value: str, rows: int) -> Any:
    return pa.repeat(pa.scalar(value), rows)


def _names() -> Any:
    return pa.array([f"service.{number:04d}.events" for number in range(TOPICS)])


def _ids() -> Any:
    return pa.array([f"{number:021d}A" for number in range(TOPICS)])


def _replicas() -> Any:
    """Returns the replicas of each partition."""
    first = range(TOPICS * PARTITIONS)
    return pa.array(
        [[(p + i) % BROKERS + 1 for i in range(3)] for p in first], pa.list_(pa.int32())
    )


def _baseline() -> pa.Table:
    size = TOPICS * PARTITIONS
    place = np.arange(size)
    kinds = ["observed_from", *["topic_added"] * size]
    columns = {
        "version": pa.array(np.ones(size + 1, np.int64)),
        "observed_at": pa.array(np.full(size + 1, START_US)),
        "kind": pa.array(kinds),
        "topic": _behind(_names().take(pa.array(place // PARTITIONS))),
        "topic_id": _behind(_ids().take(pa.array(place // PARTITIONS))),
        "partition": _behind(pa.array((place % PARTITIONS).astype(np.int32))),
        "new_leader": _behind(pa.array((place % BROKERS + 1).astype(np.int32))),
        "new_leader_epoch": _behind(pa.array(np.zeros(size, np.int32))),
        "new_isr": _behind(_replicas()),
        "new_replicas": _behind(_replicas()),
    }
    return _table(size + 1, columns)


def _behind(column: Any) -> Any:
    """Returns a column behind a null."""
    return pa.concat_arrays([pa.nulls(1, column.type), column])


def _changes(random: np.random.Generator, first: int, count: int, epochs: Any) -> pa.Table:
    place = random.integers(0, TOPICS * PARTITIONS, count)
    led = random.random(count) < 0.5
    # The epoch of a partition rises with each change of its leader.
    order = np.argsort(place, kind="stable")
    rises = np.cumsum(led[order])
    starts = np.searchsorted(place[order], np.arange(TOPICS * PARTITIONS))
    before = np.concatenate([[0], rises])[starts]
    epoch = np.empty(count, np.int32)
    epoch[order] = epochs[place[order]] + rises - before[place[order]]
    np.add.at(epochs, place[led], 1)
    leader = ((place + random.integers(0, 3, count)) % BROKERS + 1).astype(np.int32)
    lists = pa.array([[a + 1, b + 1] for a in range(BROKERS) for b in range(BROKERS)])
    isr = lists.take(pa.array(random.integers(0, BROKERS**2, count), mask=led))
    times = START_US + 1 + np.arange(first, first + count) * 40_000
    columns = {
        "version": pa.array(np.arange(first + 2, first + count + 2)),
        "observed_at": pa.array(times),
        "kind": pa.array(["isr_changed", "leader_changed"]).take(pa.array(led.astype(int))),
        "topic": _names().take(pa.array(place // PARTITIONS)),
        "topic_id": _ids().take(pa.array(place // PARTITIONS)),
        "partition": pa.array((place % PARTITIONS).astype(np.int32)),
        "new_leader": pa.array(leader, mask=~led),
        "new_leader_epoch": pa.array(epoch, mask=~led),
        "new_isr": isr,
        "unseen_us": pa.array(np.full(count, 1_000_000)),
    }
    return _table(count, columns)
