"""A change record as `rdmeta watch` and `rdmeta image diff` show it: its old and its new value."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

from rdmeta.cache import MetadataCache
from rdmeta.model import Change

# An old and a new value. Each is None, a text, broker ids, or a leader with its epoch.
Pair = tuple[Any, Any]


def old_and_new(change: Change) -> Pair:
    """Returns the values of a change, as JSON has them; None where the record has none."""
    made = _PAIRS.get(change.kind)
    return (None, change.detail) if made is None else made(change)


def resync(cache: MetadataCache) -> Change:
    """Returns a record that says that changes were lost, as a history has it."""
    fields: dict[str, Any] = dict.fromkeys(Change._fields)
    fields |= {
        "version": cache.version,
        "cluster_id": cache.cluster_id,
        "session": cache.session,
        "observed_at": datetime.now(timezone.utc),
        "source": "poll",
        "kind": "resync",
        "detail": "changes were lost",
    }
    return Change(**fields)


def _leaders(change: Change) -> Pair:
    return (
        _leader(change.old_leader, change.old_leader_epoch),
        _leader(change.new_leader, change.new_leader_epoch),
    )


def _leader(leader: int | None, epoch: int | None) -> dict[str, int | None] | None:
    return {"leader": leader, "leader_epoch": epoch}


def _moves(change: Change) -> str:
    """Returns which replicas a reassignment adds and removes."""
    sides = {"adding": change.new_adding, "removing": change.new_removing}
    return ", ".join(f"{word} {value_text(ids)}" for word, ids in sides.items() if ids) or "ended"


def _added(change: Change) -> Any:
    """Returns the topic's id; of a partition in a log its leader."""
    if change.partition is None:
        return change.topic_id
    return _leader(change.new_leader, change.new_leader_epoch)


_PAIRS: dict[str, Callable[[Change], Pair]] = {
    "topic_added": lambda change: (None, _added(change)),
    "topic_absent": lambda change: (change.topic_id, None),
    "topic_removed": lambda change: (change.topic_id, None),
    "topic_recreated": lambda change: (None, change.topic_id),
    "topic_id_learned": lambda change: (None, change.topic_id),
    "partitions_added": lambda change: (None, _leader(change.new_leader, change.new_leader_epoch)),
    "leader_changed": _leaders,
    "leader_epoch_changed": _leaders,
    "isr_changed": lambda change: (change.old_isr, change.new_isr),
    "replicas_changed": lambda change: (change.old_replicas, change.new_replicas),
    "offline_changed": lambda change: (change.old_offline, change.new_offline),
    "unclean_election": lambda change: (None, _leader(change.new_leader, change.new_leader_epoch)),
    "reassignment_changed": lambda change: (None, _moves(change)),
    "elr_changed": lambda change: (None, change.new_elr),
    "controller_changed": lambda change: (None, _leader(change.broker, change.new_leader_epoch)),
    "broker_fenced": lambda change: (None, "fenced"),
    "broker_unfenced": lambda change: (None, "unfenced"),
    "broker_shutting_down": lambda change: (None, "shutting down"),
    "broker_removed": lambda change: (change.detail, None),
    "cluster_changed": lambda change: (change.detail, change.cluster_id),
}


def value_text(value: Any) -> str | None:
    """Returns an old or new value as text: 3 (epoch 7), 1,2,3 or the text that it is."""
    if isinstance(value, dict):
        leader = "none" if value["leader"] is None else value["leader"]
        epoch = value["leader_epoch"]
        return f"{leader}" if epoch is None else f"{leader} (epoch {epoch})"
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    return value if value is None else str(value)


def _is_elected_again(old: Any, new: Any) -> bool:
    """Returns whether both values are of one leader, and the second has a later epoch."""
    if not isinstance(old, dict) or not isinstance(new, dict) or old["leader"] is None:
        return False
    before, after = old["leader_epoch"], new["leader_epoch"]
    return old["leader"] == new["leader"] and None not in (before, after) and before < after


def change_row(change: Change, pair: Pair) -> list[Any]:
    """Returns the cells time, topic, partition, kind, old and new; a broker's have its id.

    Where the leaders or all values are equal, the new one says what the change is.
    """
    old, new = map(value_text, pair)
    if old is not None and old == new:
        new = f"{new}, with changes in between"
    elif _is_elected_again(*pair):
        new = f"{new}, elected again"
    if change.broker is not None and not isinstance(pair[1], dict):
        old, new = (None if each is None else f"{change.broker} {each}" for each in (old, new))
    return [change.observed_at, change.topic, change.partition, change.kind, old, new]


def change_object(change: Change, pair: Pair) -> dict[str, Any]:
    """Returns a change as an object of JSON, without the name of its cluster."""
    return {
        "time": change.observed_at,
        "kind": change.kind,
        "topic": change.topic,
        "partition": change.partition,
        "broker": change.broker,
        "old": pair[0],
        "new": pair[1],
    }
