"""What a change record can say: the one list of its sources, its kinds and its columns.

C, Cython, Arrow, Parquet and Spark take them from here. `tools/change_table.py` writes what C,
Cython and `rdmeta.model` need; `rdmeta.history` and `rdmeta.spark` read this module. Every list
only grows, at its end: programs, files and tables have the old numbers and places.
CONTRIBUTING.md says how to add a kind or a column.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = [
    "COLUMNS",
    "END_KINDS",
    "KINDS",
    "MADE_BY",
    "SOURCES",
    "STATE_KINDS",
    "TYPES",
    "WHOLE_KINDS",
    "Column",
    "Kind",
    "Source",
]


class Source(NamedTuple):
    """Where a change came from; its place is its number in C."""

    name: str
    doc: str


class Kind(NamedTuple):
    """What changed; its place is its number in C.

    `made_by` is "core" (the C code), "recorder" (`rdmeta.history`), or "" for a kind that is
    declared and that nothing makes. `rows` says what a record means for the state of partitions,
    their leader, leader epoch, ISR and replicas:

        whole    a row with a partition says all of its state
        part     a row with a partition says a part of its state
        end      a row without a partition ends the state of all partitions of its topic
    """

    name: str
    made_by: str
    doc: str
    rows: frozenset[str] = frozenset()


class Type(NamedTuple):
    """How values of one type are called: in C's Arrow tables, in Python and in Spark."""

    c: str
    python: str
    spark: str


class Column(NamedTuple):
    """A column of change records; `optional` ones may be null in a record of a cache."""

    name: str
    type: str
    optional: bool


MADE_BY = ("core", "recorder", "")

SOURCES = (
    Source("poll", "an answer"),
    Source("hint", "a leader hint (KIP-951)"),
    Source("log", "the metadata log; nothing makes it yet"),
    Source("expiry", "a deadline"),
    Source("purge", "rdmeta_cache_purge()"),
)

_WHOLE = frozenset({"whole"})
_PART = frozenset({"part"})
_END = frozenset({"end"})

KINDS = (
    Kind("topic_added", "core", "valid, and it was not before", _WHOLE),
    Kind("topic_absent", "core", "missing from an answer about all topics", _END),
    Kind("topic_removed", "core", "gone", _END),
    Kind("topic_recreated", "core", "another topic of the same name", _WHOLE | _END),
    Kind("topic_error", "core", "unknown, denied or invalid; detail: the error", _END),
    Kind("partitions_added", "core", "one record per partition", _WHOLE),
    Kind("leader_changed", "core", "another leader, or a later leader epoch", _PART),
    Kind("isr_changed", "core", "the in-sync replicas, as a set", _PART),
    Kind("replicas_changed", "core", "the replicas, or their order", _PART),
    Kind("offline_changed", "core", "the offline replicas, as a set"),
    Kind("broker_added", "core", "detail: host:port and rack"),
    Kind("broker_removed", "core", "detail: host:port and rack"),
    Kind("broker_changed", "core", "detail: host:port and rack"),
    Kind("cluster_changed", "core", "another cluster's id; detail: the old id"),
    Kind("config_changed", "", "a topic's configuration"),
    Kind("resync", "recorder", "changes were lost; detail: why"),
    Kind("observed_from", "recorder", "a recording begins"),
    Kind("observed_to", "recorder", "a recording ends"),
    Kind("internal_changed", "core", "is_internal; detail: true or false"),
    Kind("operations_changed", "core", "authorized operations (KIP-430); detail: the bit field"),
    Kind("topic_id_learned", "core", "the same topic, whose id was not known"),
    Kind("leader_epoch_changed", "core", "the leader epoch became known, or unknown", _PART),
    Kind("partition_error", "core", "a partition's error; detail: the error, or NONE"),
    Kind("cluster_id_learned", "core", "the same cluster, whose id was not known; detail: the id"),
)

TYPES = {
    "int32": Type("INT32", "int", "int"),
    "int64": Type("INT64", "int", "long"),
    "string": Type("STRING", "str", "string"),
    "time": Type("TIME", "datetime", "timestamp"),
    "ids": Type("IDS", "tuple[int, ...]", "array<int>"),
}

COLUMNS = (
    Column("version", "int64", False),
    Column("cluster_id", "string", True),
    Column("session", "string", False),
    Column("observed_at", "time", False),
    Column("source", "string", False),
    Column("source_broker", "int32", True),
    Column("kind", "string", False),
    Column("topic", "string", True),
    Column("topic_id", "string", True),
    Column("partition", "int32", True),
    Column("broker", "int32", True),
    Column("old_leader", "int32", True),
    Column("new_leader", "int32", True),
    Column("old_leader_epoch", "int32", True),
    Column("new_leader_epoch", "int32", True),
    Column("old_isr", "ids", True),
    Column("new_isr", "ids", True),
    Column("old_replicas", "ids", True),
    Column("new_replicas", "ids", True),
    Column("offset", "int64", True),
    Column("detail", "string", True),
)


def _kinds(rows: str) -> tuple[str, ...]:
    return tuple(kind.name for kind in KINDS if rows in kind.rows)


WHOLE_KINDS = _kinds("whole")
END_KINDS = _kinds("end")
STATE_KINDS = (*WHOLE_KINDS, *_kinds("part"))
