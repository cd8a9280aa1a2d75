"""Change records as rows of a table, and as objects of JSON."""

from __future__ import annotations

from typing import Any

from rdmeta.model import Change

__all__ = ["old_and_new", "values_of"]

_VALUES = (
    "kind",
    "topic",
    "topic_id",
    "partition",
    "broker",
    "old_leader",
    "new_leader",
    "old_leader_epoch",
    "new_leader_epoch",
    "old_isr",
    "new_isr",
    "old_replicas",
    "new_replicas",
    "detail",
)
_LEADER_KINDS = ("leader_changed", "leader_epoch_changed", "partitions_added")
# The kinds whose detail is what was there before.
_FORMER = ("broker_removed", "cluster_changed")


def values_of(change: Change) -> dict[str, Any]:
    """Returns what a record says about a topic, a partition or a broker, without absent values.

    leader_changed has both leaders even if one is None: there was no leader, or there is none now.
    """
    present = {key: getattr(change, key) for key in _VALUES if getattr(change, key) is not None}
    if change.kind == "leader_changed":
        present.update(old_leader=change.old_leader, new_leader=change.new_leader)
    return present


def old_and_new(change: Change) -> tuple[str | None, str | None]:
    """Returns what a record says that was, and what is now, as text; None where it says nothing."""
    if change.kind in _LEADER_KINDS:
        old = _leader(change.old_leader, change.old_leader_epoch)
        return (
            None if change.kind == "partitions_added" else old,
            _leader(change.new_leader, change.new_leader_epoch),
        )
    if change.kind == "isr_changed":
        return _ids(change.old_isr), _ids(change.new_isr)
    if change.kind == "replicas_changed":
        return _ids(change.old_replicas), _ids(change.new_replicas)
    return (change.detail, None) if change.kind in _FORMER else (None, change.detail)


def _leader(leader: int | None, epoch: int | None) -> str:
    text = "no leader" if leader is None else f"leader {leader}"
    return text if epoch is None else f"{text}, epoch {epoch}"


def _ids(ids: tuple[int, ...] | None) -> str | None:
    return None if ids is None else ",".join(map(str, ids)) or "none"
