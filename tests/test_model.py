"""The values that lookups, changes and refreshes return."""

from __future__ import annotations

import copy
import pickle

from rdmeta.model import ALL, Change, Changes, Request, operation_names


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
        "old_offline",
        "new_offline",
        "partition_epoch",
        "broker_epoch",
        "new_adding",
        "new_removing",
        "new_elr",
        "unseen_us",
    )


def test_changes_are_iterated_and_counted_and_show_their_last_version() -> None:
    change = Change(*[None] * len(Change._fields))  # type: ignore[arg-type]
    changes = Changes((change, change), 7, False)
    assert list(changes) == [change, change]
    assert len(changes) == 2
    assert repr(changes) == "<2 changes until=7 resync=False>"


def test_operations_have_the_names_of_kafkas_acl_operations() -> None:
    assert operation_names(0) == ()
    assert operation_names(1 << 3 | 1 << 8) == ("READ", "DESCRIBE")
    assert operation_names(0b1111_1111_1111_1111)[9:] == (
        "CLUSTER_ACTION",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
        "CREATE_TOKENS",
        "DESCRIBE_TOKENS",
        "TWO_PHASE_COMMIT",
    )


def test_an_operation_of_a_later_kafka_has_its_code() -> None:
    assert operation_names(1 << 4 | 1 << 20) == ("WRITE", "OPERATION_20")
    assert operation_names(-(2**31) | 1 << 3) == ("READ", "OPERATION_31")
