"""Rows of silver of one small cluster on 2026-11-01, as a test of a measure needs them."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
from gold_tables import rows_of_silver

__all__ = ["at", "broker", "change", "interval", "observation", "tables"]

_BEGIN = 1_793_491_200
_ORIGIN = {"origin": "o", "version": 1, "partial": False}


def at(second: float) -> datetime:
    """Returns a moment of 2026-11-01 in UTC."""
    return datetime.fromtimestamp(_BEGIN + second, timezone.utc)


def interval(begin: float, end: float, **values: Any) -> dict[str, Any]:
    """Returns an interval of a healthy partition, with these values."""
    row = {"cluster_id": "one", "topic": "orders", "topic_id": "A" * 22, "partition": 0}
    state = {"leader": 1, "leader_epoch": 5, "isr": [1, 2, 3], "replicas": [1, 2, 3], "min_isr": 2}
    return {**row, **state, **_span(begin, end), **values}


def broker(begin: float, end: float, number: int, **values: Any) -> dict[str, Any]:
    """Returns an interval of a broker, with these values."""
    row = {"cluster_id": "one", "broker": number, "host": "localhost", "port": 9092}
    return {**row, **_span(begin, end), **values}


def change(second: float, old: int | None, new: int | None, **values: Any) -> dict[str, Any]:
    """Returns a change of leader, with these values."""
    row = {"cluster_id": "one", "topic": "orders", "topic_id": "A" * 22, "partition": 0}
    leaders = {"old_leader": old, "new_leader": new, "elections": 1, "recordings": 1}
    return {**row, **leaders, "observed_at": at(second), **_ORIGIN, **values}


def observation(begin: float, end: float, ended_by: str = "open") -> dict[str, Any]:
    times = {"seen_from": at(begin), "seen_to": at(end)}
    times |= {"counts_from": at(begin), "counts_to": at(end)}
    return {"cluster_id": "one", "origin": "o", "ended_by": ended_by, "partial": False, **times}


def tables(rows: list[dict[str, Any]], *seen: dict[str, Any]) -> dict[str, pa.Table]:
    """Returns silver with these intervals of partitions and these observations."""
    return {
        "partition_interval": rows_of_silver("partition_interval", rows),
        "observation": rows_of_silver("observation", list(seen)),
    }


def _span(begin: float, end: float) -> dict[str, Any]:
    times = {"began_at": at(begin), "ended_at": at(end), "us": round((end - begin) * 1e6)}
    return {**times, "began_by": "isr_changed", "ended_by": "isr_changed", **_ORIGIN}
