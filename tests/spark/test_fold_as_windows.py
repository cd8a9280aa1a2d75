"""A fold gives the periods that Spark's window functions give, where their columns overlap."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
from fold_model import ENDS, Row, apart, random_rows
from fold_tables import as_table, take
from pyspark.sql import SparkSession
from window_intervals import partition_interval

from rdmeta import Fold

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
STATE = ("topic_id", "leader", "leader_epoch", "isr")


def coalesced(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Returns periods of equal leader, epoch, ISR and topic id; `rows` are in order of time.

    A fold also begins a piece for what the windows do not look at. A topic that comes again begins
    a period even if its state is the same.
    """
    made: list[tuple[Any, ...]] = []
    standing: dict[tuple[Any, ...], int] = {}
    for row in rows:
        key = (row["cluster_id"], row["topic"], row["partition"])
        state = (*key, *(row[name] for name in STATE))
        last = made[standing[key]] if key in standing else None
        goes_on = last is not None and (*last[:-2], last[-1]) == (*state, row["began_at"])
        if last is not None and goes_on and row["began_by"] not in ENDS:
            made[standing[key]] = (*last[:-1], row["ended_at"])
            continue
        standing[key] = len(made)
        made.append((*state, row["began_at"], row["ended_at"]))
    return sorted(made, key=repr)


def microseconds(when: datetime) -> int:
    return (when.astimezone(timezone.utc) - EPOCH) // timedelta(microseconds=1)


def test_a_fold_of_any_history_agrees_with_window_functions(spark: SparkSession) -> None:
    first = random.SystemRandom().randrange(2**32)
    print(f"seeds from {first}")
    tables, folded = [], []
    for seed in range(first, first + 30):
        rows = apart(random_rows(seed))
        cluster = f"cluster-{seed}"
        given = [row | {"cluster_id": cluster, "session": "s"} for row in rows]
        tables.append(as_table(given))
        fold = Fold(cluster, "s")
        fold.add(tables[-1])
        fold.end(rows[-1]["observed_at"], "gap")
        folded += take(fold, "partition_interval")
    changes = spark.createDataFrame(pa.concat_tables(tables))
    observed = changes.select("cluster_id", "session", "version", "observed_at").limit(0)
    found = partition_interval(changes, observed).orderBy("began_at", "version").collect()
    windows = [
        row.asDict()
        | {
            "began_at": microseconds(row.began_at),
            "ended_at": microseconds(row.ended_at),
            "isr": None if row.isr is None else tuple(row.isr),
        }
        for row in found
    ]
    assert coalesced(folded) == coalesced(windows)
