"""Small histories of several days, through the recorder's own writer, and what a folder holds."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from fake_cache import FakeCache, FakeClock

from rdmeta.history import Recorder
from rdmeta.history.schema import Footer
from rdmeta.pipeline import layout

FIRST_DAY = datetime(2026, 11, 1, tzinfo=timezone.utc)


def cluster_day(
    directory: Path,
    cluster_id: str,
    day: int,
    leaders: tuple[int, ...] = (1, 2, 3),
    *,
    at: float = 3600.0,
    every: float = 10.0,
    topics: int = 2,
) -> None:
    """Writes a recording of that day of November, in which these brokers lead in turn."""
    clock = FakeClock()
    clock.now = FIRST_DAY + timedelta(days=day - 1, seconds=at)
    cache = FakeCache(clock, cluster_id)
    cache.add_broker(1)
    for number in range(topics):
        cache.add_topic(f"topic-{number}", chr(ord("A") + number) * 22, [leaders[0], 2])
    with Recorder(cache, directory, clock=clock, max_gap=86400.0) as recorder:
        recorder.observe()
        for leader in leaders[1:]:
            clock.pass_seconds(every)
            for number in range(topics):
                cache.set_leader(f"topic-{number}", 0, leader)
            recorder.observe()
        clock.pass_seconds(every)
        recorder.observe()


def tree(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Returns every file below a directory with what differs when it is written again."""
    return {
        str(path.relative_to(directory)): (
            path.stat().st_ino,
            path.stat().st_mtime_ns,
            path.read_bytes(),
        )
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def contents(directory: Path) -> dict[str, bytes]:
    """Returns the bytes of every file below a directory."""
    return {name: content for name, (_, _, content) in tree(directory).items()}


def large_days(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a new cluster's tables have a part for each day, however few its rows are."""
    monkeypatch.setattr(layout, "_SMALL_DAY", 0)


def moved(source: Path, target: Path, by: timedelta) -> None:
    """Writes the same history at another time of the day, as a recorder of format 1 would.

    Such a recording goes on over midnight.
    """
    for path in source.rglob("*.parquet"):
        table = pq.read_table(path, partitioning=None)
        footer = Footer.parse(table.schema.metadata)
        later = pc.add(table["observed_at"], pa.scalar(by, pa.duration("us")))
        place = table.schema.get_field_index("observed_at")
        table = table.set_column(place, table.schema.field(place), later)
        footer = footer._replace(
            observed_from=footer.observed_from + by, observed_to=footer.observed_to + by
        )
        target.mkdir(parents=True, exist_ok=True)
        pq.write_table(table.replace_schema_metadata(footer.metadata()), target / path.name)
