"""The metadata log of KRaft: its directories, and which part of it is proven.

    logs = [looked_at(node) for node in find_nodes(["/var/kafka/metadata"])]
    proof_of(logs).end
    check(["/var/kafka/metadata"])
    replayed(logs[0], offset_at(logs[0], time_us)).replay.partition("orders", 3)

Kafka's controllers keep all metadata, and each change of it, in one replicated log. This package
reads its files beside a live node and in archives. It takes no lock and writes nothing.
"""

from __future__ import annotations

from rdmeta.kraft.checking import check
from rdmeta.kraft.comparing import Finding, findings_of
from rdmeta.kraft.explaining import Turn, explained
from rdmeta.kraft.log_files import KraftError, NodeFiles, QuorumState, find_nodes
from rdmeta.kraft.proving import NodeLog, Proof, looked_at, proof_of, restart_of
from rdmeta.kraft.replaying import Replayed, offset_at, replayed

__all__ = [
    "Finding",
    "KraftError",
    "NodeFiles",
    "NodeLog",
    "Proof",
    "QuorumState",
    "Replayed",
    "Turn",
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
