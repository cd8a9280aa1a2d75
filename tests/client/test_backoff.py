"""When a request may leave after failures, after answers without progress, and to confirm."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from rdmeta.client.backoff import Backoff, Gate
from rdmeta.client.retry_schedule import _is_other


def test_a_confirmation_waits_once_more_and_never_less_than_its_gate() -> None:
    gate = Gate(Backoff(0.1, 1.0, Random(1)))
    assert 0.08 <= gate.after_one(5.0) - 5.0 <= 0.12
    for _ in range(6):
        gate.failed(5.0)
    assert gate.after_one(5.0) == gate.opens >= 5.8


@pytest.mark.parametrize(
    ("now", "is_other"),
    [
        (("a", 3, 1), False),
        (("b", 3, 1), True),
        (("a", 4, 1), True),
        ((None, 3, 1), False),  # a broker of a version without ids
        ((None, 4, 1), True),
        (("a", None, 1), False),  # a broker of a version without epochs
        (("a", None, 2), True),
    ],
)
def test_what_a_broker_does_not_say_opens_no_window_of_an_election(
    now: tuple[str | None, int | None, int], is_other: bool
) -> None:
    fields = dict(zip(("topic_id", "leader_epoch", "leader"), now, strict=True))
    each: Any = SimpleNamespace(**fields)
    assert _is_other(each, ("a", 3, 1)) is is_other
    before = (None, 3, 1)
    assert _is_other(each, before) is (is_other and now != ("b", 3, 1))
