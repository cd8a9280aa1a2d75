"""The metadata log of KRaft: its directories, and which part of it is proven.

    log = rdmeta.KraftLog("/var/kafka/metadata")
    log.state().partition("orders", 3)
    log.changes(since=yesterday), log.records(topic="orders")

Kafka's controllers keep all metadata, and each change of it, in one replicated log. This package
reads its files beside a live node and in archives. It takes no lock and writes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdmeta.kraft.checking import check
from rdmeta.kraft.comparing import Finding
from rdmeta.kraft.explaining import Turn
from rdmeta.kraft.log_files import KraftError, LogChangedError
from rdmeta.kraft.log_reader import KraftLog, LogChanges, LogEpoch, Turns
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
from rdmeta.kraft.proving import NodeLog, Proof, SnapshotUse

if TYPE_CHECKING:
    from rdmeta.kraft.recordings import record as record

__all__ = [
    "Difference",
    "Fact",
    "Finding",
    "KraftError",
    "KraftLog",
    "KraftState",
    "LogChangedError",
    "LogChanges",
    "LogEpoch",
    "LoggedBroker",
    "LoggedPartition",
    "LoggedTopic",
    "NodeLog",
    "Proof",
    "Record",
    "RecordMark",
    "Records",
    "SnapshotUse",
    "Turn",
    "Turns",
    "check",
]


def __getattr__(name: str) -> object:
    if name == "record":  # it needs pyarrow
        from rdmeta.kraft.recordings import record

        return record
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
