"""The measures of gold: columns, keys and SQL.

Each measure is one SELECT over silver and over the views of `sql/prelude.sql`. docs/measures.md
says what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

import pyarrow as pa

from rdmeta.pipeline.tables import schema_of


@dataclass(frozen=True)
class Measure:
    """A table of gold.

    `time` is the column that tells to which month a row belongs. Rows are in the order of the
    columns `order`, its key, and then of the other ones.
    """

    name: str
    schema: pa.Schema
    time: str
    order: tuple[str, ...]


def text_of(name: str, dialect: Literal["duckdb", "spark"] = "duckdb") -> str:
    """Returns the SQL of a measure, or that of `prelude`."""
    folder = files(__package__) / "sql"
    if dialect == "spark":  # tools/spark_sql.py makes these of the others
        folder /= dialect
    return (folder / f"{name}.sql").read_text(encoding="utf-8")


def _measure(name: str, order: str, columns: str) -> Measure:
    """Returns a measure; the second column of `order` is its time."""
    keys = tuple(order.split())
    return Measure(name, schema_of("cluster_id str, " + columns), keys[1], keys)


# One entry for each file of sql/, in the order of docs/measures.md.
_ALL: tuple[Measure, ...] = (
    _measure(
        "coverage_hour",
        "cluster_id hour",
        "hour time, observed f64, hole f64, holes holes, origins strs",
    ),
    _measure(
        "data_quality",
        "cluster_id day",
        "day time, observations i32, partial i32, holes i32, hole_minutes f64, files_aside i32,"
        " clocks_back i32, epochs_disagreeing i64, disagreement_seconds f64?, unknown_min_isr f64",
    ),
    _measure(
        "risk_hour",
        "cluster_id hour topic",
        "topic str, hour time, leaderless f64, under_replicated f64, under_min_isr f64?,"
        " at_min_isr f64?, single_copy f64, not_preferred f64, reassigning f64?,"
        " rack_unsafe f64?, observed f64, unknown_min_isr f64, unknown_reassigning f64,"
        " unknown_racks f64, eff_is_exact bool",
    ),
    _measure(
        "incident",
        "cluster_id began_at kind",
        "kind str, began_at time, ended_at time, minutes f64, most i64, partitions i64,"
        " topics i64, broker i32?, censored bool",
    ),
    _measure(
        "recovery",
        "cluster_id began_at topic topic_id partition",
        "topic str, topic_id str?, partition i32, began_at time, ended_at time, seconds f64,"
        " brokers ids, leader_changed bool?, begin_unseen bool, ended_by str, censored bool",
    ),
    _measure(
        "churn_day",
        "cluster_id day kind broker topic",
        "day time, kind str, broker i32?, topic str?, gained i64, lost i64, kept i64,"
        " elections i64, unseen_elections i64, unclean i64?",
    ),
    _measure(
        "isr_flap_day",
        "cluster_id day broker topic",
        "day time, broker i32, topic str, times i64, median_seconds f64",
    ),
    _measure(
        "balance_hour",
        "cluster_id hour kind broker rack",
        "hour time, kind str, broker i32?, rack str?, leaders f64, replicas f64, preferred f64,"
        " preferred_led_by_others f64, skew f64?, replica_skew f64?, max_to_mean f64?,"
        " variation f64?, leaderless f64?, brokers f64?, observed f64",
    ),
    _measure(
        "reassignment",
        "cluster_id began_at topic topic_id partition",
        "topic str, topic_id str?, partition i32, began_at time, ended_at time?,"
        " from_replicas ids, to_replicas ids, seconds f64?, outcome str",
    ),
    _measure(
        "broker_day",
        "cluster_id day broker",
        "day time, broker i32, up f64, fenced f64?, shutting_down f64?, unknown_fenced f64,"
        " away f64, restarts i64, unclean_restarts i64?, unknown_restarts i64,"
        " preferred_seconds f64s, preferred_open i64, observed f64",
    ),
    _measure(
        "topic_life",
        "cluster_id began_at topic topic_id last_seen_at",
        "topic str, topic_id str?, began_at time, last_seen_at time, ended_at time?,"
        " ended_by str?, partitions i32, partitions_added i64, begin_seen bool, end_seen bool",
    ),
    _measure(
        "config_change",
        "cluster_id observed_at resource_type resource key old_value new_value",
        "observed_at time, resource_type str, resource str, key str, old_value str?,"
        " new_value str?, asked_by str?",
    ),
    _measure(
        "controller",
        "cluster_id began_at",
        "began_at time, ended_at time, broker i32?, epoch i32?, seconds f64?, censored bool",
    ),
)

MEASURES: dict[str, Measure] = {each.name: each for each in _ALL}
