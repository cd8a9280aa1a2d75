"""The one table of change records: their sources, their kinds and their columns.

C, Cython, Arrow, Parquet and Spark take them from here. `tools/change_table.py` writes the parts
that C, Cython and `rdmeta.model` need. `rdmeta.history` and `rdmeta.spark` read this module. Every
list grows only at its end, because programs, files and tables keep the old numbers and positions.
CONTRIBUTING.md says how to add a kind or a column.
"""

from __future__ import annotations

from typing import NamedTuple


class ChangeSource(NamedTuple):
    """The origin of a change; its position in the list is its number in C."""

    name: str
    doc: str


class Kind(NamedTuple):
    """One kind of change; its position in the list is its number in C.

    `made_by` names the code that makes such records: "core" (the cache), "recorder"
    (`rdmeta.history`), "log" (a replay of the metadata log). It is empty for a kind that is
    declared but not made yet. `rows` says how a record of this kind describes partitions: their
    leader, leader epoch, ISR and replicas.

        whole    A row with a partition gives its whole state.
        part     A row with a partition gives a part of its state.
        end      A row without a partition ends the state of all partitions of its topic.
    """

    name: str
    made_by: tuple[str, ...]
    doc: str
    rows: frozenset[str] = frozenset()


class Type(NamedTuple):
    """The names of one type: in C's Arrow tables, in Python and in Spark."""

    c: str
    python: str
    spark: str


class Column(NamedTuple):
    """A column of change records; an `optional` column may be null in a cache's record.

    Files have the columns in this order. Records have a column `behind` another one if they got it
    later than files did.
    """

    name: str
    type: str
    optional: bool
    behind: str | None = None


MADE_BY = ("core", "recorder", "log")

SOURCES = (
    ChangeSource("poll", "an answer"),
    ChangeSource("hint", "a leader hint (KIP-951)"),
    ChangeSource("log", "the metadata log"),
    ChangeSource("expiry", "a deadline"),
    ChangeSource("purge", "rdmeta_cache_purge()"),
)

_CORE = ("core",)
_RECORDER = ("recorder",)
_LOG = ("log",)
_BOTH = ("core", "log")

_WHOLE = frozenset({"whole"})
_PART = frozenset({"part"})
_END = frozenset({"end"})

KINDS = (
    Kind("topic_added", _BOTH, "the topic became valid", _WHOLE),
    Kind("topic_absent", _CORE, "a broker does not have the topic any more", _END),
    Kind("topic_removed", _BOTH, "the topic was removed from the cache", _END),
    Kind("topic_recreated", _CORE, "another topic has the same name now", _WHOLE | _END),
    Kind("topic_error", _CORE, "unknown, denied or invalid; detail: the error", _END),
    Kind("partitions_added", _BOTH, "the topic has more partitions; one record each", _WHOLE),
    Kind("leader_changed", _BOTH, "another leader, or a later leader epoch", _PART),
    Kind("isr_changed", _BOTH, "the in-sync replicas changed, as a set", _PART),
    Kind("replicas_changed", _BOTH, "the replicas or their order changed", _PART),
    Kind("offline_changed", _CORE, "the offline replicas changed, as a set"),
    Kind("broker_added", _BOTH, "detail: host:port and rack"),
    Kind("broker_removed", _BOTH, "detail: host:port and rack"),
    Kind("broker_changed", _BOTH, "detail: host:port and rack"),
    Kind("cluster_changed", _CORE, "the cluster id changed; detail: the old id"),
    Kind("config_changed", (*_RECORDER, *_LOG), "detail: KEY=VALUE, or KEY alone: not known"),
    Kind("resync", _RECORDER, "changes were lost; detail: the reason"),
    Kind("observed_from", _RECORDER, "a recording begins"),
    Kind("observed_to", _RECORDER, "a recording ends"),
    Kind("internal_changed", _CORE, "is_internal changed; detail: true or false"),
    Kind("operations_changed", _CORE, "authorized operations (KIP-430); detail: the bit field"),
    Kind("topic_id_learned", _CORE, "the same topic: its id became known"),
    Kind("leader_epoch_changed", _BOTH, "the leader epoch became known, or unknown", _PART),
    Kind("partition_error", _CORE, "a partition's error changed; detail: the error, or NONE"),
    Kind("cluster_id_learned", _CORE, "the same cluster: its id became known; detail: the id"),
    Kind("broker_fenced", _LOG, "the controller fenced the broker"),
    Kind("broker_unfenced", _LOG, "the broker may lead and be asked"),
    Kind("broker_shutting_down", _LOG, "the broker began a controlled shutdown"),
    Kind("reassignment_changed", _LOG, "replicas to add or to remove changed"),
    Kind("elr_changed", _LOG, "the eligible leader replicas changed, as a set (KIP-966)"),
    Kind("unclean_election", _LOG, "the new leader was not in sync; beside its leader_changed"),
    Kind("controller_changed", _LOG, "another leader of the controllers, or a later epoch"),
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
    Column("old_offline", "ids", True),
    Column("new_offline", "ids", True),
    Column("unseen_us", "int64", True, behind="new_elr"),
    Column("partition_epoch", "int32", True),
    Column("broker_epoch", "int64", True),
    Column("new_adding", "ids", True),
    Column("new_removing", "ids", True),
    Column("new_elr", "ids", True),
)


_LATER = {column.behind: column for column in COLUMNS if column.behind}
RECORD_COLUMNS = tuple(
    each
    for column in COLUMNS
    if not column.behind
    for each in (column, _LATER.get(column.name))
    if each
)
"""The columns in the order of records."""


def _kinds(rows: str) -> tuple[str, ...]:
    return tuple(kind.name for kind in KINDS if rows in kind.rows)


WHOLE_KINDS = _kinds("whole")
END_KINDS = _kinds("end")
STATE_KINDS = (*WHOLE_KINDS, *_kinds("part"))
