"""The values that lookups, changes and refreshes return."""

from __future__ import annotations

import copy
import pickle

from rdmeta.model import ALL, Change, Changes, Request


def test_all_is_one_object_wherever_it_goes() -> None:
    assert pickle.loads(pickle.dumps(ALL)) is ALL
    assert copy.deepcopy(ALL) is ALL
    assert repr(ALL) == "rdmeta.ALL"


def test_a_request_asks_for_everything_and_creates_nothing_by_default() -> None:
    request = Request()
    assert request.topics is ALL
    assert not request.allow_auto_create


def test_a_change_has_the_columns_of_a_change_record_in_their_order() -> None:
    assert Change._fields == (
        "version",
        "cluster_id",
        "session",
        "observed_at",
        "source",
        "source_broker",
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
        "offset",
        "detail",
    )


def test_changes_are_iterated_and_counted_and_show_their_last_version() -> None:
    change = Change(*[None] * len(Change._fields))  # type: ignore[arg-type]
    changes = Changes((change, change), 7, False)
    assert list(changes) == [change, change]
    assert len(changes) == 2
    assert repr(changes) == "<2 changes until=7 resync=False>"
