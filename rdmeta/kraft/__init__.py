"""The metadata log of KRaft: its directories, and which part of it is proven.

    log = rdmeta.KraftLog("/var/kafka/metadata")
    log.state().partition("orders", 3)
    log.changes(since=yesterday), log.records(topic="orders")

Kafka's controllers keep all metadata, and each change of it, in one replicated log. This package
reads its files beside a live node and in archives. It takes no lock and writes nothing.

KraftLog stands on find_nodes(), looked_at(), proof_of(), findings_of() and replayed(), which are
for programs that want one of these alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdmeta.kraft.checking import check
from rdmeta.kraft.comparing import Finding, findings_of
from rdmeta.kraft.explaining import Turn, explained
from rdmeta.kraft.log_files import KraftError, LogChangedError, NodeFiles, QuorumState, find_nodes
from rdmeta.kraft.log_reader import KraftLog, LogChanges, LogEpoch, Point, Turns
from rdmeta.kraft.log_records import Record, Records
from rdmeta.kraft.log_state import (
    Difference,
    Fact,
    KraftState,
    LoggedBroker,
    LoggedPartition,
    LoggedTopic,
    RecordMark,
)
from rdmeta.kraft.proving import (
    Election,
    NodeLog,
    Proof,
    SnapshotUse,
    looked_at,
    proof_of,
    restart_of,
)
from rdmeta.kraft.replaying import LogReplay, offset_at, replayed

if TYPE_CHECKING:
    from rdmeta.kraft.recordings import record as record

__all__ = [
    "Difference",
    "Election",
    "Fact",
    "Finding",
    "KraftError",
    "KraftLog",
    "KraftState",
    "LogChanges",
    "LogChangedError",
    "LogEpoch",
    "LogReplay",
    "LoggedBroker",
    "LoggedPartition",
    "LoggedTopic",
    "NodeFiles",
    "NodeLog",
    "Point",
    "Proof",
    "QuorumState",
    "Record",
    "RecordMark",
    "Records",
    "SnapshotUse",
    "Turn",
    "Turns",
    "check",
    "explained",
    "find_nodes",
    "findings_of",
    "looked_at",
    "offset_at",
    "proof_of",
    "replayed",
    "restart_of",
]


def __getattr__(name: str) -> object:
    if name == "record":  # it needs pyarrow
        from rdmeta.kraft.recordings import record

        return record
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
