"""A model of silver: change records become the periods between them, by Spark's window functions.

A *segment* is one stretch of unbroken observation. It begins at a recording's `observed_from`, or
at a `resync` in it, and ends at the last observation before the next one. A partition's state is
carried forward from row to row within its segment, and never out of it. A state that is still valid
at the end of its segment makes an *open* period, which ends at the last observation of it.

If recordings of one cluster overlap in time, only the recording whose segment began first counts at
each moment. So periods of a partition never overlap, and their sums are sums of time. All times are
times of observation. A change happened between the observation that first saw it and the one
before.

The inputs, which `load` makes:

* `changes`: the rows of change records.
* `observed`: `cluster_id, session, version, observed_at`. It gives the times until which recordings
  observed a cluster, beyond the times in `changes`. It may be empty.
"""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from rdmeta._change_table import COLUMNS, END_KINDS, STATE_KINDS, TYPES, WHOLE_KINDS
from rdmeta.history import Recording

_MARKS = ("observed_from", "resync")

_SESSION = ["cluster_id", "session"]
_SEGMENT = [*_SESSION, "segment"]
_PARTITION = [*_SEGMENT, "topic", "partition"]

_CHANGES = ", ".join(f"{column.name} {TYPES[column.type].spark}" for column in COLUMNS)
_OBSERVED = "cluster_id string, session string, version long, observed_at timestamp"


def load(spark: SparkSession, found: list[Recording]) -> tuple[DataFrame, DataFrame]:
    """Returns the `changes` and `observed` of these recordings."""
    files = [file for recording in found for file in recording.files]
    # Hadoop takes some characters of a path as a pattern.
    paths = [re.sub(r"([\\{}\[\]*?])", r"\\\1", str(file.path.resolve())) for file in files]
    observed = [(f.cluster_id, f.session, f.until, f.observed_to) for f in files]
    return (
        spark.read.schema(_CHANGES).parquet(*paths),
        spark.createDataFrame(observed, _OBSERVED),
    )


def segments(changes: DataFrame, observed: DataFrame) -> DataFrame:
    """Returns one row per segment, a stretch of unbroken observation, with the part that counts.

    Segments without such a part are left out. The columns are:

        cluster_id, session, segment    the segment's key; `segment` is a number
        from_version                    the first version
        seen_from, seen_to              the times of the first and the last observation
        counts_from                     later than `seen_from` if another recording came first
        ended_by                        observed_to: the recorder ended it; resync: changes were
                                        lost; unfinished: the recorder died or is still running
    """
    seen = changes.select(*_SESSION, "version", "observed_at", "kind").unionByName(
        observed.withColumn("kind", F.lit("observed"))
    )
    numbered = _numbered(seen, _marks(changes))
    stretch = numbered.groupBy(*_SEGMENT).agg(
        F.min("version").alias("from_version"),
        F.min("observed_at").alias("seen_from"),
        F.max("observed_at").alias("seen_to"),
        F.max(F.col("kind") == "observed_to").alias("ended"),
    )
    in_session = Window.partitionBy(*_SESSION).orderBy("segment")
    by_begin = (
        Window.partitionBy("cluster_id")
        .orderBy("seen_from", "session", "segment")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    covered_until = F.max("seen_to").over(by_begin)
    return (
        stretch.withColumn(
            "ended_by",
            F.when(F.lead("segment").over(in_session).isNotNull(), "resync")
            .when(F.col("ended"), "observed_to")
            .otherwise("unfinished"),
        )
        .withColumn("counts_from", F.greatest("seen_from", covered_until))
        .where(
            (F.col("counts_from") == F.col("seen_from")) | (F.col("counts_from") < F.col("seen_to"))
        )
        .drop("ended")
    )


def partition_interval(changes: DataFrame, observed: DataFrame) -> DataFrame:
    """Returns one row for each period in which leader, epoch and ISR of a partition were the same.

    A null `leader` means leaderless; a null `leader_epoch` or `isr` means not known. `isr` is in
    ascending order, since it is a set. `replicas` is the list at the period's begin, preferred
    leader first. `began_by` and `ended_by` are kinds of change. `began_by` may also be `baseline`
    (the state existed when the recording began) or `overlap` (another recording covered the state
    until here). `ended_by` of an open period is the reason why the segment ended.
    """
    rows = _numbered(changes, _marks(changes)).withColumn("has_state", _has_state())
    states = rows.where(F.col("has_state")).select(*_PARTITION, *_state_columns())
    ends = rows.where(F.col("partition").isNull() & F.col("kind").isin(*END_KINDS)).select(
        *_SEGMENT, "topic", *_end_columns()
    )
    known = states.select(*_PARTITION).distinct()
    events = states.unionByName(known.join(ends, [*_SEGMENT, "topic"]))
    return _clipped(_periods(_at_versions(events)), segments(changes, observed))


def leader_change(changes: DataFrame, observed: DataFrame) -> DataFrame:
    """Returns one row per observed change of leader or leader epoch, at its first observation.

    `elections` is the rise of the epoch: with more than one, leaders in between were not observed.
    `recordings` is the number of recordings that observed the change. If topic id and epoch are
    known, rows in several recordings are one change. Otherwise only one recording counts at each
    moment.
    """
    rows = (
        _numbered(changes, _marks(changes))
        .where((F.col("kind") == "leader_changed") & F.col("partition").isNotNull())
        .withColumn("same", F.col("topic_id").isNotNull() & F.col("new_leader_epoch").isNotNull())
    )
    counted = F.broadcast(segments(changes, observed).select(*_SEGMENT, "counts_from"))
    counting_rows = rows.join(counted, _SEGMENT, "left").where(
        F.col("same") | (F.col("observed_at") >= F.col("counts_from"))
    )
    one = Window.partitionBy(
        "cluster_id",
        "topic",
        "topic_id",
        "partition",
        "new_leader_epoch",
        "new_leader",
        F.when(~F.col("same"), F.struct(*_SESSION, "version")),
    )
    first = one.orderBy("observed_at", "session", "version")
    return (
        counting_rows.withColumn("recordings", F.size(F.collect_set("session").over(one)))
        .withColumn("sight", F.row_number().over(first))
        .where(F.col("sight") == 1)
        .select(
            "cluster_id",
            "topic",
            "topic_id",
            "partition",
            "observed_at",
            "old_leader",
            "new_leader",
            "old_leader_epoch",
            "new_leader_epoch",
            (F.col("new_leader_epoch") - F.col("old_leader_epoch")).alias("elections"),
            "source",
            "source_broker",
            "session",
            "version",
            "recordings",
        )
    )


def _marks(changes: DataFrame) -> DataFrame:
    """Returns for each session the versions at which an observation began."""
    return (
        changes.where(F.col("kind").isin(*_MARKS))
        .groupBy(*_SESSION)
        .agg(F.collect_set("version").alias("marks"))
    )


def _numbered(rows: DataFrame, marks: DataFrame) -> DataFrame:
    """Returns `rows` with their segment's number and the version at which it began, its `mark`.

    Rows before a recording's first mark are left out, as the state there is not known.
    """
    begun = F.filter("marks", lambda mark: mark <= F.col("version"))
    return (
        rows.join(F.broadcast(marks), _SESSION)
        .where(F.array_min("marks") <= F.col("version"))
        .withColumn("segment", F.size(begun))
        .withColumn("mark", F.array_max(begun))
        .drop("marks")
    )


def _has_state() -> Column:
    """Returns whether a row gives a part of a partition's state."""
    return F.col("partition").isNotNull() & F.col("kind").isin(*STATE_KINDS)


def _state_columns() -> list[Column]:
    """Returns the parts of a partition's state: each a struct, null if the row does not give it."""
    whole = F.col("kind").isin(*WHOLE_KINDS)

    def part(when: Column, *values: Column) -> Column:
        return F.when(when, F.struct(*values))

    return [
        F.col("version"),
        F.col("observed_at"),
        F.when(F.col("version") == F.col("mark"), "baseline")
        .otherwise(F.col("kind"))
        .alias("kind"),
        F.lit(False).alias("cut"),
        part(
            whole | F.col("kind").isin("leader_changed", "leader_epoch_changed"),
            F.lit(True).alias("known"),
            F.col("new_leader").alias("leader"),
            F.col("new_leader_epoch").alias("epoch"),
        ).alias("led"),
        part(whole | F.col("topic_id").isNotNull(), F.col("topic_id")).alias("named"),
        part(whole | (F.col("kind") == "isr_changed"), F.sort_array("new_isr").alias("isr")).alias(
            "synced"
        ),
        part(
            whole | (F.col("kind") == "replicas_changed"), F.col("new_replicas").alias("replicas")
        ).alias("placed"),
    ]


def _end_columns() -> list[Column]:
    """Returns the columns of a topic's end: the state of each of its partitions becomes unknown."""
    none = F.lit(None)
    ids = none.cast("array<int>")
    return [
        F.col("version"),
        F.col("observed_at"),
        F.col("kind"),
        F.lit(True).alias("cut"),
        F.struct(
            F.lit(False).alias("known"),
            none.cast("int").alias("leader"),
            none.cast("int").alias("epoch"),
        ).alias("led"),
        F.struct(none.cast("string").alias("topic_id")).alias("named"),
        F.struct(ids.alias("isr")).alias("synced"),
        F.struct(ids.alias("replicas")).alias("placed"),
    ]


def _at_versions(events: DataFrame) -> DataFrame:
    """Returns one row per partition and version; a new state wins over an end."""
    order = list(dict.fromkeys([*END_KINDS, "topic_added", "baseline", *STATE_KINDS]))
    rank = F.array_position(F.lit(order), F.col("kind"))

    def state_part(name: str) -> Column:
        return F.max_by(name, F.when(F.col(name).isNotNull(), ~F.col("cut"))).alias(name)

    return events.groupBy(*_PARTITION, "version").agg(
        F.max("observed_at").alias("observed_at"),
        F.min_by("kind", rank).alias("kind"),
        F.max("cut").alias("cut"),
        *(state_part(name) for name in ("led", "named", "synced", "placed")),
    )


def _periods(events: DataFrame) -> DataFrame:
    """Returns the periods: carries states forward, drops rows without a change, finds each end."""
    history = Window.partitionBy(*_PARTITION).orderBy("version")
    carried = [
        F.last(name, ignorenulls=True).over(history).alias(name)
        for name in ("led", "named", "synced", "placed")
    ]
    state = F.struct("led", "named", "synced")
    before = F.lag("state").over(history)
    ending = F.lead(F.struct("observed_at", "kind")).over(history)
    return (
        events.select(*_PARTITION, "version", "observed_at", "kind", "cut", *carried)
        .withColumn("state", state)
        .withColumn("same", ~F.col("cut") & F.col("state").eqNullSafe(before))
        .where(~F.col("same"))
        .withColumn("next", ending)
        .where(F.coalesce("led.known", F.lit(False)))
    )


def _clipped(periods: DataFrame, stretches: DataFrame) -> DataFrame:
    """Returns the parts of `periods` that count, in the final columns; segments end open ones."""
    begin = F.greatest("observed_at", "counts_from")
    end = F.greatest(F.coalesce("next.observed_at", "seen_to"), "observed_at")
    stood_before = F.col("observed_at") < F.col("counts_from")
    return (
        periods.join(F.broadcast(stretches), _SEGMENT)
        .withColumn("ended_at", end)
        .where(~stood_before | (F.col("ended_at") > F.col("counts_from")))
        .withColumn("began_at", begin)
        .select(
            "cluster_id",
            "topic",
            F.col("named.topic_id").alias("topic_id"),
            "partition",
            F.col("led.leader").alias("leader"),
            F.col("led.epoch").alias("leader_epoch"),
            F.col("synced.isr").alias("isr"),
            F.col("placed.replicas").alias("replicas"),
            "began_at",
            "ended_at",
            ((F.unix_micros("ended_at") - F.unix_micros("began_at")) / 1e6).alias("seconds"),
            F.when(stood_before, "overlap").otherwise(F.col("kind")).alias("began_by"),
            F.coalesce("next.kind", F.col("ended_by")).alias("ended_by"),
            F.col("next").isNull().alias("open"),
            "session",
            "version",
        )
    )
