"""A stream of the data source, driven as Spark would: offsets, tasks and a checkpoint."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from spark_releases import skip_limits

from rdmeta.history.schema import CHANGE_SCHEMA
from rdmeta.spark.source import DefaultSource
from rdmeta.spark.source.streaming import StreamReader
from rdmeta.spark.spark_versions import has_spark

__all__ = ["Stream", "stream_reader"]


def stream_reader(**given: str) -> StreamReader:
    """Returns the reader of a stream with these options."""
    source = DefaultSource(given)
    reader = source.streamReader(source.schema())
    assert isinstance(reader, StreamReader)
    return reader


class Stream:
    """A query with a checkpoint: the ends of its batches as JSON; `committed` is how many ended.

    `restart` is a process that begins at the checkpoint, perhaps with other options.
    """

    def __init__(self, options: Mapping[str, str], *, available_now: bool = False) -> None:
        self.log: list[str] = []
        self.committed = 0
        self.rows: list[dict[str, Any]] = []
        self.restart(options, available_now=available_now)

    def restart(self, options: Mapping[str, str], *, available_now: bool = False) -> None:
        """Drops the process, and begins another one."""
        skip_limits({**options, "maxRowsPerTrigger": ""} if available_now else options)
        self.reader = stream_reader(**options)
        self._initial: str | None = None
        if available_now:
            self.reader.prepareForTriggerAvailableNow()

    def begin_of(self, batch: int) -> dict[str, Any]:
        """Returns where a batch begins; Spark asks for the first one's in each process."""
        if batch:
            return told(self.log[batch - 1])
        if self._initial is None:
            self._initial = json.dumps(self.reader.initialOffset())
        return told(self._initial)

    def plan(self) -> bool:
        """Writes the end of the next batch to the checkpoint; returns whether there is one."""
        if self.committed < len(self.log):
            return True
        start = self.begin_of(len(self.log))
        # Before 4.2 Spark does not tell where the batch begins.
        known = (start, self.reader.getDefaultReadLimit()) if has_spark("4.2") else ()
        end = json.dumps(self.reader.latestOffset(*known))
        if told(end) == start:
            return False
        self.log.append(end)
        return True

    def tasks(self) -> list[Any]:
        """Returns the tasks of the batch that is planned, as executors get them."""
        end = told(self.log[self.committed])
        found = self.reader.partitions(self.begin_of(self.committed), end)
        return [pickle.loads(pickle.dumps(each)) for each in found]

    def read(self, tasks: list[Any]) -> list[dict[str, Any]]:
        """Returns the rows of tasks."""
        sent: StreamReader = pickle.loads(pickle.dumps(self.reader))
        batches = [batch for task in tasks for batch in sent.read(task)]
        rows: list[dict[str, Any]] = pa.Table.from_batches(batches, CHANGE_SCHEMA).to_pylist()
        return rows

    def batch(self) -> list[dict[str, Any]] | None:
        """Plans, reads and commits a batch; returns its rows, None if there is nothing new."""
        if not self.plan():
            return None
        rows = self.read(self.tasks())
        self.committed += 1
        self.rows += rows
        return rows

    def drain(self) -> list[int]:
        """Runs batches until there is nothing new; returns their numbers of rows."""
        counts = []
        while (rows := self.batch()) is not None:
            counts.append(len(rows))
        return counts


def told(text: str) -> dict[str, Any]:
    """Returns an offset as Spark reads it from JSON."""
    found: dict[str, Any] = json.loads(text)
    return found
