"""Streams that stop at points between plan and commit, in a process that is to be killed there.

    python stopped_streams.py FOLDER POINT:BATCH ...

For each point it reads FOLDER/POINT-BATCH/history into the folder `out` beside it, with the
checkpoint in `checkpoint`. Each stream stops for ever at its point of that batch, counted from 0,
and the file `stopped` beside it appears. A line says that all have stopped.

`ends` is before the end of a batch goes to the checkpoint, `plans` is before its tasks are made,
`begins` is before the first row, `reads` is behind some of the rows, and `read` is behind all rows
of a task.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from rdmeta.spark import build_session
from rdmeta.spark.source import DefaultSource, files
from rdmeta.spark.source.options import Options
from rdmeta.spark.source.streaming import StreamReader

POINTS = ("ends", "plans", "begins", "reads", "read")
ROWS = "12"


def stop(folder: str) -> None:
    """Tells that the stream has stopped, and waits for the end of the process."""
    Path(folder, "stopped").touch()
    signal.pause()


class StoppingReader(StreamReader):
    """A reader that stops at a point of a batch. Its tasks have few rows, so there are several."""

    def __init__(self, options: Options, folder: str, point: str, batch: int) -> None:
        super().__init__(options)
        self._folder, self._point, self._batch = folder, point, batch

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        end = super().latestOffset(start, limit)
        if end != start:
            self._pass("ends")
            self._batch -= 1
        return end

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        # `latestOffset` has counted this batch already.
        self._batch += 1
        self._pass("plans")
        files.PACK_BYTES = 5 * files.ROW_BYTES
        tasks = super().partitions(start, end)
        if self._batch == 0:
            for task in tasks[1:2]:
                task.stop = self._folder, self._point  # type: ignore[attr-defined]
        self._batch -= 1
        return tasks

    def read(self, partition: InputPartition) -> Iterator[Any]:
        folder, point = getattr(partition, "stop", ("", ""))
        if point == "begins":
            stop(folder)
        for batch in super().read(partition):
            if point == "reads":
                yield batch.slice(0, 2)
                stop(folder)
            yield batch
        if point == "read":
            stop(folder)

    def _pass(self, point: str) -> None:
        if (self._point, self._batch) == (point, 0):
            stop(self._folder)


class StoppingSource(DefaultSource):
    """The data source with three options more."""

    @classmethod
    def name(cls) -> str:
        return "stopping"

    def schema(self) -> StructType:
        return DefaultSource({"path": self.options["path"]}).schema()

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        given = dict(self.options)
        stops = given.pop("folder"), given.pop("point"), int(given.pop("batch"))
        return StoppingReader(Options.parse(given), *stops)


def main(root: str, points: list[str]) -> None:
    spark = build_session("local[16]", short=True)
    spark.dataSource.register(StoppingSource)
    for each in points:
        point, _, batch = each.partition(":")
        folder = Path(root, f"{point}-{batch}")
        reader = spark.readStream.format("stopping").option("path", str(folder / "history"))
        reader = reader.option("folder", str(folder)).option("point", point)
        rows = reader.option("batch", batch).option("maxRowsPerTrigger", ROWS).load()
        writer = rows.writeStream.format("parquet").trigger(processingTime="1 second")
        query = writer.option("checkpointLocation", str(folder / "checkpoint"))
        running = query.start(str(folder / "out"))
        # One after the other: Spark gives a Python process 10 seconds to start.
        while not (folder / "stopped").exists():
            if not running.isActive:
                raise SystemExit(f"{each}: {running.exception()}")
            time.sleep(0.02)
    print("stopped", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
