"""From change records to the periods between them: functions of data frames, nothing else.

What is observed is a *segment*: from a recording's `observed_from`, or a `resync` in it, until
the last thing it saw before the next one. A partition's state is carried forward from row to row
within its segment and never out of it. A state that still stood when its segment ended makes an
*open* period, which ends when it was last seen to stand.

Where recordings of one cluster overlap in time, each moment is told by the recording whose
segment began first, and by it alone: periods of a partition never overlap, and their sums are sums
of time. Times are those of observation. A change happened at some moment between the observation
that first saw it and the one before.

Inputs, both of them as `rdmeta.spark.tables.load` makes them:

* `changes`: rows of a change record.
* `observed`: `cluster_id, session, version, observed_at`; what recordings say about how long they
  looked, beyond what rows can say. May be empty.
"""

from __future__ import annotations

from rdmeta._change_table import END_KINDS, STATE_KINDS, WHOLE_KINDS
from rdmeta.errors import MissingExtraError

try:
    from pyspark.sql import Column, DataFrame, Window
    from pyspark.sql import functions as F
except ImportError as error:
    raise MissingExtraError.of("rdmeta.spark", "spark") from error

__all__ = ["leader_change", "leader_minutes", "partition_interval", "segments"]

_MARKS = ("observed_from", "resync")

_SESSION = ["cluster_id", "session"]
_SEGMENT = [*_SESSION, "segment"]
_PARTITION = [*_SEGMENT, "topic", "partition"]


def segments(changes: DataFrame, observed: DataFrame) -> DataFrame:
    """The stretches of unbroken observation, and which part of each counts.

    One row each: `cluster_id, session, segment` (a number), `from_version, seen_from, seen_to`
    (timestamps), `counts_from` (later than `seen_from` where another recording already looked),
    `ended_by` (`observed_to`: as it should; `resync`: changes were lost; `unfinished`: the
    recorder died or is still at work). Segments of which nothing counts are left out.
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
    told_until = F.max("seen_to").over(by_begin)
    return (
        stretch.withColumn(
            "ended_by",
            F.when(F.lead("segment").over(in_session).isNotNull(), "resync")
            .when(F.col("ended"), "observed_to")
            .otherwise("unfinished"),
        )
        .withColumn("counts_from", F.greatest("seen_from", told_until))
        .where(
            (F.col("counts_from") == F.col("seen_from")) | (F.col("counts_from") < F.col("seen_to"))
        )
        .drop("ended")
    )


def partition_interval(changes: DataFrame, observed: DataFrame) -> DataFrame:
    """One row for each period in which leader, epoch and ISR of a partition stood.

    `leader` null: there was none. `leader_epoch`, `isr` null: not known. `isr` is in ascending
    order, since it is a set; `replicas` is as of the period's begin, preferred leader first.
    `began_by` and `ended_by` are kinds of change, or `baseline` (it stood when the recording
    began), `overlap` (it stood already, and another recording told of it until here), and for
    open ones what ended the segment.
    """
    rows = _numbered(changes, _marks(changes)).withColumn("stated", _stated())
    states = rows.where(F.col("stated")).select(*_PARTITION, *_state_columns())
    ends = rows.where(F.col("partition").isNull() & F.col("kind").isin(*END_KINDS)).select(
        *_SEGMENT, "topic", *_end_columns()
    )
    known = states.select(*_PARTITION).distinct()
    events = states.unionByName(known.join(ends, [*_SEGMENT, "topic"]))
    return _clipped(_periods(_at_versions(events)), segments(changes, observed))


def leader_change(changes: DataFrame, observed: DataFrame) -> DataFrame:
    """One row for each change of leader or leader epoch that was seen, when first seen.

    `elections` is by how much the epoch rose: more than one, and there were leaders in between
    that nobody saw. `recordings` is how many saw it. With topic id and epoch known a change is
    the same one in whichever recording it appears; without, each moment is told by one recording.
    """
    rows = (
        _numbered(changes, _marks(changes))
        .where((F.col("kind") == "leader_changed") & F.col("partition").isNotNull())
        .withColumn("same", F.col("topic_id").isNotNull() & F.col("new_leader_epoch").isNotNull())
    )
    counted = F.broadcast(segments(changes, observed).select(*_SEGMENT, "counts_from"))
    told = rows.join(counted, _SEGMENT, "left").where(
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
        told.withColumn("recordings", F.size(F.collect_set("session").over(one)))
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


def leader_minutes(intervals: DataFrame) -> DataFrame:
    """How long each broker led, summed over partitions: one row a cluster and broker.

    `broker` null: time without a leader. `minutes` are minutes of partitions, `share` that part
    of the cluster's, `partitions` how many the broker led at one time or another.
    """
    everything = Window.partitionBy("cluster_id")
    return (
        intervals.groupBy("cluster_id", F.col("leader").alias("broker"))
        .agg(
            (F.sum("seconds") / 60).alias("minutes"),
            F.countDistinct("topic", F.coalesce("topic_id", F.lit("")), "partition").alias(
                "partitions"
            ),
        )
        .withColumn("share", F.try_divide(F.col("minutes"), F.sum("minutes").over(everything)))
        .select("cluster_id", "broker", "minutes", "share", "partitions")
    )


def _marks(changes: DataFrame) -> DataFrame:
    """For each session the versions at which observation began anew."""
    return (
        changes.where(F.col("kind").isin(*_MARKS))
        .groupBy(*_SESSION)
        .agg(F.collect_set("version").alias("marks"))
    )


def _numbered(rows: DataFrame, marks: DataFrame) -> DataFrame:
    """`rows` with the number of their segment and the version at which it began, its `mark`.

    What precedes a recording's first is left out: nobody knows how anything stood.
    """
    begun = F.filter("marks", lambda mark: mark <= F.col("version"))
    return (
        rows.join(F.broadcast(marks), _SESSION)
        .withColumn("segment", F.size(begun))
        .withColumn("mark", F.array_max(begun))
        .drop("marks")
        .where(F.col("segment") > 0)
    )


def _stated() -> Column:
    """Whether a row says something of a partition's state."""
    return F.col("partition").isNotNull() & F.col("kind").isin(*STATE_KINDS)


def _state_columns() -> list[Column]:
    """What a row says of a partition: each a struct, null where it says nothing."""
    whole = F.col("kind").isin(*WHOLE_KINDS)

    def said(when: Column, *values: Column) -> Column:
        return F.when(when, F.struct(*values))

    return [
        F.col("version"),
        F.col("observed_at"),
        F.when(F.col("version") == F.col("mark"), "baseline")
        .otherwise(F.col("kind"))
        .alias("kind"),
        F.lit(False).alias("cut"),
        said(
            whole | F.col("kind").isin("leader_changed", "leader_epoch_changed"),
            F.lit(True).alias("known"),
            F.col("new_leader").alias("leader"),
            F.col("new_leader_epoch").alias("epoch"),
        ).alias("led"),
        said(whole | F.col("topic_id").isNotNull(), F.col("topic_id")).alias("named"),
        said(whole | (F.col("kind") == "isr_changed"), F.sort_array("new_isr").alias("isr")).alias(
            "synced"
        ),
        said(
            whole | (F.col("kind") == "replicas_changed"), F.col("new_replicas").alias("replicas")
        ).alias("placed"),
    ]


def _end_columns() -> list[Column]:
    """A topic's end, as a row of each of its partitions: nothing is known of them any more."""
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
    """One row for each partition and version; what is said of the new state wins over an end."""
    order = list(dict.fromkeys([*END_KINDS, "topic_added", "baseline", *STATE_KINDS]))
    rank = F.array_position(F.lit(order), F.col("kind"))

    def said(name: str) -> Column:
        return F.max_by(name, F.when(F.col(name).isNotNull(), ~F.col("cut"))).alias(name)

    return events.groupBy(*_PARTITION, "version").agg(
        F.max("observed_at").alias("observed_at"),
        F.min_by("kind", rank).alias("kind"),
        F.max("cut").alias("cut"),
        *(said(name) for name in ("led", "named", "synced", "placed")),
    )


def _periods(events: DataFrame) -> DataFrame:
    """States carried forward, rows that change nothing dropped, each one's end found."""
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
    """The parts of `periods` that count, ended where their segment does, as the final columns."""
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
