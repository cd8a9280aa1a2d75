"""Change records as text and as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from rdmeta.cli.changes import old_and_new, values_of
from rdmeta.model import Change

NOTHING = Change(*[None] * len(Change._fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "values", "old", "new"),
    [
        (
            "leader_changed",
            {"old_leader": 1, "old_leader_epoch": 4, "new_leader": 2, "new_leader_epoch": 5},
            "leader 1, epoch 4",
            "leader 2, epoch 5",
        ),
        ("leader_changed", {"old_leader": 1}, "leader 1", "no leader"),
        ("partitions_added", {"new_leader": 3, "new_leader_epoch": 0}, None, "leader 3, epoch 0"),
        ("isr_changed", {"old_isr": (1, 2), "new_isr": ()}, "1,2", "none"),
        ("replicas_changed", {"old_replicas": (1,), "new_replicas": (2, 1)}, "1", "2,1"),
        ("broker_added", {"detail": "h:1"}, None, "h:1"),
        ("broker_removed", {"detail": "h:1"}, "h:1", None),
        ("cluster_changed", {"detail": "before"}, "before", None),
        ("topic_removed", {}, None, None),
    ],
)
def test_a_record_says_what_was_and_what_is(
    kind: str, values: dict[str, Any], old: str | None, new: str | None
) -> None:
    assert old_and_new(NOTHING._replace(kind=kind, **values)) == (old, new)


def test_absent_values_are_left_out_but_for_a_leader_that_is_not_there() -> None:
    change = NOTHING._replace(kind="leader_changed", topic="a", partition=0, old_leader=1)
    assert values_of(change) == {
        "kind": "leader_changed",
        "topic": "a",
        "partition": 0,
        "old_leader": 1,
        "new_leader": None,
    }
    assert values_of(NOTHING._replace(kind="topic_added", topic="a")) == {
        "kind": "topic_added",
        "topic": "a",
    }
