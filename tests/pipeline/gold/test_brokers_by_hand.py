"""The measures of brokers, topics, configurations and controllers, of small histories by hand."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from gold_tables import gold_of, rows_of_silver

MONTH = datetime(2026, 11, 1, tzinfo=timezone.utc)
Row = dict[str, Any]


def at(hours: float, seconds: float = 0) -> datetime:
    """Returns a time after the begin of November; before it, hours are negative."""
    return MONTH + timedelta(hours=hours, seconds=seconds)


def days(begin: datetime, end: datetime) -> Iterable[tuple[datetime, datetime, bool]]:
    """Yields the parts that midnights cut, and whether each is the last one."""
    while begin <= end:
        midnight = (begin + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        yield begin, min(midnight, end), end <= midnight
        if end <= midnight:
            return
        begin = midnight


def intervals(begin: datetime, end: datetime, **values: Any) -> list[Row]:
    """Returns the rows of a state, cut at midnight; `began_by` and `ended_by` are of its edges."""
    found: list[Row] = []
    for from_, to, is_last in days(begin, end):
        by = {"began_by": values.get("began_by", "baseline") if from_ == begin else "midnight"}
        by |= {"ended_by": values.get("ended_by", "open") if is_last else "midnight"}
        us = (to - from_) // timedelta(microseconds=1)
        row = {"cluster_id": "one", "origin": "o", "version": len(found), "partial": False}
        found.append(row | values | {"began_at": from_, "ended_at": to, "us": us} | by)
    return found


def broker(number: int, begin: datetime, end: datetime, **values: Any) -> list[Row]:
    return intervals(begin, end, broker=number, host="h", port=9092, **values)


def logged(number: int, *steps: tuple[datetime, bool, bool], end: datetime) -> list[Row]:
    """Returns the rows of a broker as a log tells them: when, fenced, shutting down."""
    ends = [*(step[0] for step in steps[1:]), end]
    return [
        row
        for (begin, fenced, shut), until in zip(steps, ends, strict=True)
        for row in broker(number, begin, until, fenced=fenced, shutting_down=shut)
    ]


def partition(begin: datetime, end: datetime, leader: int | None, *replicas: int) -> list[Row]:
    isr = sorted(replicas)
    return intervals(
        begin, end, topic="t", partition=0, leader=leader, replicas=list(replicas), isr=isr
    )


def seen(*spans: tuple[datetime, datetime]) -> list[Row]:
    """Returns the rows of observation; a hole lies between two spans."""
    return [
        {
            "cluster_id": "one",
            "origin": "o",
            **dict.fromkeys(("seen_from", "counts_from"), from_),
            **dict.fromkeys(("seen_to", "counts_to"), to),
            "ended_by": "gap" if is_last else "midnight",
            "partial": False,
        }
        for begin, end in spans
        for from_, to, is_last in days(begin, end)
    ]


def silver(**tables: list[Row]) -> dict[str, pa.Table]:
    return {name: rows_of_silver(name, rows) for name, rows in tables.items()}


def brokers(found: list[Row], number: int = 2) -> list[Row]:
    return [row for row in found if row["broker"] == number]


def shown(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


def outage(*spans: tuple[datetime, datetime]) -> list[Row]:
    """Returns broker_day of broker 2, which is not listed for a minute from 10:00 on."""
    found = silver(
        observation=seen(*spans),
        broker_interval=[
            row
            for begin, end in spans
            for up_from, up_to in ((at(0), at(10)), (at(10, 60), at(24)))
            if max(begin, up_from) < min(end, up_to)
            for row in broker(2, max(begin, up_from), min(end, up_to))
        ],
        partition_interval=[
            row
            for begin, end in spans
            for leader, from_, to in ((2, at(0), at(10)), (1, at(10), at(10, 300)))
            if max(begin, from_) < min(end, to)
            for row in partition(max(begin, from_), min(end, to), leader, 2, 1)
        ]
        + partition(at(10, 300), at(24), 2, 2, 1),
    )
    return brokers(gold_of(found, "broker_day"))


def test_a_broker_that_is_killed_is_away_and_gets_its_leaders_back() -> None:
    (row,) = outage((at(0), at(24)))
    assert (row["up"], row["away"], row["observed"]) == (1439, 1, 1440)
    assert (row["restarts"], row["unknown_restarts"], row["unclean_restarts"]) == (1, 1, None)
    assert (row["preferred_seconds"], row["preferred_open"]) == ([240.0], 0)
    assert (row["fenced"], row["shutting_down"], row["unknown_fenced"]) == (None, None, 1440)


def test_a_return_within_a_hole_is_neither_a_restart_nor_time_away() -> None:
    (row,) = outage((at(0), at(10)), (at(10, 120), at(24)))
    assert row["up"] == row["observed"] == 1438
    assert (row["away"], row["restarts"], row["preferred_open"]) == (0, 0, 0)


def test_a_broker_that_is_seen_to_be_away_before_or_behind_a_hole_is_away_then_alone() -> None:
    (row,) = outage((at(0), at(10, 15)), (at(10, 30), at(24)))
    assert (row["up"], row["away"], row["observed"]) == (1439, 0.75, 1439.75)
    assert row["restarts"] == 1
    (row,) = outage((at(0), at(10, 15)), (at(10, 90), at(24)))
    assert (row["away"], row["restarts"]) == (0.25, 0)


def test_the_time_to_all_leaders_is_open_if_a_hole_or_another_end_comes_first() -> None:
    (row,) = outage((at(0), at(10, 200)), (at(10, 400), at(24)))
    assert (row["preferred_seconds"], row["preferred_open"]) == ([], 1)


@pytest.mark.parametrize("hosts", [True, False])
def test_a_broker_that_is_away_over_midnight_needs_a_replica_to_be_away_the_next_day(
    hosts: bool,
) -> None:
    replicas = (1, 2) if hosts else (1, 3)
    found = gold_of(
        silver(
            observation=seen((at(0), at(48))),
            broker_interval=[*broker(2, at(0), at(22)), *broker(2, at(26), at(48))],
            partition_interval=partition(at(0), at(48), 1, *replicas),
        ),
        "broker_day",
    )
    first, second = brokers(found)
    assert (first["up"], first["away"], first["restarts"]) == (1320, 120, 0)
    assert (second["up"], second["away"]) == (1320, 120 if hosts else 0)
    assert (second["restarts"], second["unknown_restarts"]) == ((1, 1) if hosts else (0, 0))


def test_a_broker_without_any_time_up_is_away_while_a_replica_lies_on_it() -> None:
    found = gold_of(
        silver(
            observation=seen((at(0), at(24))),
            partition_interval=[
                *partition(at(0), at(6), None, 2),
                *[row | {"partition": 1} for row in partition(at(5), at(8), None, 2)],
            ],
        ),
        "broker_day",
    )
    assert shown(found, "broker", "up", "away") == [(2, 0, 480)]


def test_a_log_tells_restarts_after_a_controlled_shutdown_from_others() -> None:
    steps = [
        *((at(0), False, False), (at(9), False, True), (at(10), True, True)),
        *((at(11), True, False), (at(12), False, False)),  # it has registered again
        *((at(14), True, False), (at(15), False, False)),  # it was not heard of for a while
    ]
    found = silver(observation=seen((at(0), at(24))), broker_interval=logged(2, *steps, end=at(24)))
    (row,) = gold_of(found, "broker_day")
    assert (row["up"], row["fenced"], row["shutting_down"]) == (1260, 180, 60)
    assert (row["away"], row["unknown_fenced"]) == (180, 0)
    assert (row["restarts"], row["unclean_restarts"], row["unknown_restarts"]) == (2, 1, 0)


def test_a_broker_that_was_fenced_for_more_than_a_day_is_followed_to_the_day_before() -> None:
    # The interval before the fence ends on the midnight before that day, which a month may lack.
    steps = [(at(-48), False, False), (at(-24), True, False), (at(12), False, False)]
    whole = silver(
        observation=seen((at(-48), at(24))),
        broker_interval=logged(2, *steps, end=at(24)),
        partition_interval=partition(at(-48), at(24), 1, 1, 2),
    )
    # A run of November may have these.
    part = silver(
        observation=seen((at(-24), at(24))),
        broker_interval=logged(2, *steps[1:], end=at(24)),
        partition_interval=partition(at(0), at(24), 1, 1, 2),
    )
    wanted = gold_of(whole, "broker_day")[-1]
    assert (wanted["restarts"], wanted["unclean_restarts"], wanted["unknown_restarts"]) == (1, 0, 1)
    assert gold_of(part, "broker_day")[-1] == wanted


def test_the_month_of_a_return_bounds_the_time_to_all_leaders() -> None:
    found = silver(
        observation=seen((at(-24), at(24))),
        broker_interval=[*broker(2, at(-24), at(-4)), *broker(2, at(-3), at(24))],
        partition_interval=[
            *partition(at(-24), at(2), 1, 2, 1),
            *partition(at(2), at(24), 2, 2, 1),
        ],
    )
    first, second = brokers(gold_of(found, "broker_day"))
    assert (first["restarts"], first["preferred_seconds"], first["preferred_open"]) == (1, [], 1)
    assert (second["restarts"], second["preferred_seconds"], second["preferred_open"]) == (0, [], 0)


def life(begin: datetime, end: datetime, topic_id: str | None, by: str, until: str) -> list[Row]:
    return intervals(
        begin, end, topic="t", topic_id=topic_id, partitions=1, began_by=by, ended_by=until
    )


def lives(*rows: list[Row]) -> list[tuple[Any, ...]]:
    found = silver(topic_interval=[row for each in rows for row in each])
    names = ("topic_id", "began_at", "last_seen_at", "ended_by", "begin_seen", "end_seen")
    return shown(gold_of(found, "topic_life"), *names)


def test_a_hole_does_not_cut_a_life_and_another_id_does() -> None:
    assert lives(
        life(at(1), at(3), "A", "topic_added", "gap"),
        life(at(5), at(7), "A", "baseline", "gap"),
        life(at(8), at(9), "B", "baseline", "open"),
    ) == [("A", at(1), at(7), None, True, False), ("B", at(8), at(9), None, False, False)]


def test_a_topic_without_ids_is_another_one_behind_a_removal() -> None:
    assert lives(
        life(at(1), at(3), None, "baseline", "topic_removed"),
        life(at(5), at(7), None, "topic_added", "gap"),
        life(at(8), at(9), None, "baseline", "open"),
    ) == [
        (None, at(1), at(3), "topic_removed", False, True),
        (None, at(5), at(9), None, True, False),
    ]


@pytest.mark.parametrize("topic_id", ["B", None])
def test_a_topic_that_is_created_again_at_midnight_is_another_one(topic_id: str | None) -> None:
    assert lives(
        life(at(1), at(24), "A", "baseline", "midnight"),
        life(at(24), at(30), topic_id, "topic_recreated", "open"),
    ) == [
        ("A", at(1), at(24), "topic_recreated", False, True),
        (topic_id, at(24), at(30), None, True, False),
    ]


def test_a_topic_has_a_row_in_each_month_and_one_begin() -> None:
    assert lives(life(at(-5), at(5), "A", "topic_added", "topic_removed")) == [
        ("A", at(-5), at(0), None, True, False),
        ("A", at(0), at(5), "topic_removed", False, True),
    ]


def test_a_topic_that_was_there_for_a_moment_as_the_month_began_was_not_there_before() -> None:
    assert lives(
        life(at(0), at(0), "A", "topic_added", "partitions_added"),
        life(at(0), at(5), "A", "partitions_added", "open"),
    ) == [("A", at(0), at(5), None, True, False)]


def configs(*rows: tuple[datetime, datetime, str, str, str]) -> list[tuple[Any, ...]]:
    names = {"resource_type": "topic", "resource": "t", "key": "min.insync.replicas"}
    found = [
        row
        for begin, end, value, by, until in rows
        for row in intervals(begin, end, value=value, began_by=by, ended_by=until, **names)
    ]
    found_rows = gold_of(silver(config_interval=found), "config_change")
    return shown(found_rows, "observed_at", "old_value", "new_value", "asked_by")


def test_only_a_value_that_follows_another_one_is_a_change_of_a_recording() -> None:
    assert configs(
        (at(1), at(3), "1", "config_changed", "config_changed"),
        (at(3), at(5), "2", "config_changed", "config_changed"),
        (at(6), at(30), "3", "config_changed", "open"),
        (at(30), at(31), "3", "baseline", "gap"),
        (at(33), at(34), "4", "baseline", "open"),
    ) == [(at(3), "1", "2", None)]


def test_a_value_that_another_origin_tells_once_more_is_no_change() -> None:
    assert (
        configs(
            (at(1), at(3), "2", "baseline", "gap"), (at(3), at(5), "2", "config_changed", "open")
        )
        == []
    )


def test_the_value_of_a_topic_that_was_created_again_is_no_change() -> None:
    assert (
        configs(
            (at(1), at(3), "1", "baseline", "topic_recreated"),
            (at(3), at(5), "2", "config_changed", "open"),
        )
        == []
    )


def terms(*steps: tuple[datetime, int | None, int], end: datetime) -> list[tuple[Any, ...]]:
    ends = [*(step[0] for step in steps[1:]), end]
    by = {"began_by": "controller_changed", "ended_by": "controller_changed"}
    rows = [
        row
        for (begin, number, epoch), until in zip(steps, ends, strict=True)
        for row in intervals(begin, until, broker=number, epoch=epoch, **by)
    ]
    names = ("began_at", "seconds", "broker", "epoch", "censored")
    return shown(gold_of(silver(controller=rows), "controller"), *names)


def test_a_term_is_one_row_however_many_days_it_lasts_and_ends_with_the_month() -> None:
    first, none, second = (at(-30), 1, 4), (at(30), None, 4), (at(31), 1, 6)
    assert terms(first, none, second, end=at(32)) == [
        (at(-30), 108_000.0, 1, 4, True),
        (at(0), 108_000.0, 1, 4, True),
        (at(30), 3600.0, None, 4, False),
        (at(31), 3600.0, 1, 6, False),
    ]
