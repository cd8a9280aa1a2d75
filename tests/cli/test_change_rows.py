"""Each kind of change is shown with the old and the new value that belong to it."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from rdmeta import MetadataCache
from rdmeta._change_table import KINDS
from rdmeta.cli.change_rows import change_object, change_row, old_and_new, resync
from rdmeta.cli.output import json_text
from rdmeta.model import Change

TIME = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


def change(kind: str, **fields: Any) -> Change:
    base: dict[str, Any] = dict.fromkeys(Change._fields)
    return Change(**{**base, "kind": kind, "observed_at": TIME, "topic": "t", **fields})


@pytest.mark.parametrize(
    ("given", "old", "new"),
    [
        (change("topic_added", topic_id="ID"), None, "ID"),
        (change("topic_absent", topic_id="ID"), "ID", None),
        (change("topic_removed", topic_id="ID"), "ID", None),
        (change("topic_recreated", topic_id="ID"), None, "ID"),
        (change("topic_error", detail="UNKNOWN"), None, "UNKNOWN"),
        (change("partitions_added", partition=3, new_leader=1, new_leader_epoch=0), None,
         "1 (epoch 0)"),
        (change("leader_changed", old_leader=1, old_leader_epoch=4, new_leader=2,
                new_leader_epoch=5), "1 (epoch 4)", "2 (epoch 5)"),
        (change("leader_changed", old_leader=1, old_leader_epoch=4, new_leader_epoch=5),
         "1 (epoch 4)", "none (epoch 5)"),
        (change("leader_changed", old_leader=1, new_leader=2), "1", "2"),
        (change("leader_changed", old_leader=3, old_leader_epoch=4, new_leader=3,
                new_leader_epoch=5), "3 (epoch 4)", "3 (epoch 5), elected again"),
        (change("leader_epoch_changed", old_leader=3, new_leader=3), "3",
         "3, with changes in between"),
        (change("leader_changed"), "none", "none, with changes in between"),
        (change("isr_changed", old_isr=(1, 2), new_isr=()), "1,2", "none"),
        (change("replicas_changed", old_replicas=(1,), new_replicas=(2, 1)), "1", "2,1"),
        (change("offline_changed", old_offline=(), new_offline=(2, 3)), "none", "2,3"),
        (change("broker_added", topic=None, broker=7, detail="h:1"), None, "7 h:1"),
        (change("broker_changed", topic=None, broker=7, detail="h:1"), None, "7 h:1"),
        (change("broker_removed", topic=None, broker=7, detail="h:1"), "7 h:1", None),
        (change("cluster_changed", topic=None, cluster_id="B", detail="A"), "A", "B"),
        (change("internal_changed", detail="true"), None, "true"),
        (change("partition_error", partition=1, detail="NONE"), None, "NONE"),
    ],
)  # fmt: skip
def test_a_row_has_the_old_and_the_new_value(
    given: Change, old: str | None, new: str | None
) -> None:
    pair = old_and_new(given)
    row = change_row(given, pair)
    assert row == [TIME, given.topic, given.partition, given.kind, old, new]


def test_every_kind_of_the_table_can_be_shown() -> None:
    for kind in KINDS:
        given = change(kind.name, partition=0)
        pair = old_and_new(given)
        assert change_row(given, pair)[3] == kind.name
        assert json_text(change_object(given, pair))


def test_an_object_has_values_and_no_texts() -> None:
    given = change("leader_changed", partition=1, old_leader=1, old_leader_epoch=4, new_leader=2)
    assert change_object(given, old_and_new(given)) == {
        "time": TIME,
        "kind": "leader_changed",
        "topic": "t",
        "partition": 1,
        "broker": None,
        "old": {"leader": 1, "leader_epoch": 4},
        "new": {"leader": 2, "leader_epoch": None},
    }


def test_a_resync_says_that_changes_were_lost() -> None:
    given = resync(MetadataCache())
    row = change_row(given, old_and_new(given))
    assert row[1:] == [None, None, "resync", None, "changes were lost"]
