"""Folds of random histories agree with a naive walk and with SQL; what each rule of a fold does."""

from __future__ import annotations

import copy
import pickle
import random
import threading
from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from fold_model import DAY, START, Piece, Row, apart, random_rows, walk
from fold_tables import TABLES, as_table, pieces, take

from rdmeta import ArgumentError, Fold, MalformedError, UnsupportedVersionError

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
NOON = 20_000 * DAY + DAY // 2


def seeds(n: int) -> range:
    """Returns seeds of this run, and prints the first one; pytest shows it when a test fails."""
    first = random.SystemRandom().randrange(2**32)
    print(f"seeds from {first}")
    return range(first, first + n)


def folded(rows: list[Row], end: int | None = None, by: Any = "open", **options: Any) -> Fold:
    fold = Fold("cluster", "session", **options)
    fold.add(as_table(rows))
    if end is not None:
        fold.end(end, by)
    return fold


def assert_same(found: list[Piece], wanted: list[Piece], what: object) -> None:
    more, fewer = Counter(found), Counter(wanted)
    assert (more - fewer, fewer - more) == (Counter(), Counter()), what


def recording(*rows: Row, at: int = NOON) -> list[Row]:
    """Returns rows behind a baseline with topic `t`, partition 0; each is one version and second.

    A row with `same` belongs to the version before it.
    """
    whole = {"topic": "t", "topic_id": "A" * 22}
    state = {"new_leader": 1, "new_leader_epoch": 5, "new_isr": (2, 1), "new_replicas": (1, 2)}
    made: list[Row] = [
        {"version": 7, "observed_at": at, "kind": "observed_from"},
        {"version": 7, "observed_at": at, "kind": "topic_added", **whole},
        {"version": 7, "observed_at": at, "kind": "topic_added", "partition": 0, **whole, **state},
    ]
    for row in rows:
        step = 0 if row.pop("same", False) else 1
        last = made[-1]
        when = last["observed_at"] + step * 1_000_000
        made.append({"version": last["version"] + step, "observed_at": when, "topic": "t"} | row)
    return made


def brief(rows: list[Row], end: int, table: str = "partition_interval", **options: Any) -> Any:
    """Returns begin and end in seconds after NOON, and the reasons, of each piece."""
    fold = folded(rows, end, **options)
    return [
        (
            (row["began_at"] - NOON) / 1e6,
            (row["ended_at"] - NOON) / 1e6,
            row["began_by"],
            row["ended_by"],
        )
        for row in take(fold, table)
    ]


# ---- models -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "n", [pytest.param(100, marks=pytest.mark.proof), pytest.param(400, marks=pytest.mark.slow)]
)
def test_a_fold_of_any_history_agrees_with_a_naive_walk(n: int) -> None:
    for seed in seeds(n):
        rows = random_rows(seed)
        end = rows[-1]["observed_at"] + seed % 3 * 1000
        by = ("open", "gap", "midnight")[seed % 3]
        assert_same(pieces(folded(rows, end, by)), walk(rows, end, by), seed)


@pytest.mark.slow
def test_pieces_are_cut_to_the_time_that_counts() -> None:
    for seed in seeds(200):
        rows = random_rows(seed)
        times = [row["observed_at"] for row in rows]
        choose = random.Random(seed).choice
        first, last = sorted((choose(times), choose([*times, times[-1] + 1])))
        fold = folded(rows, times[-1], "gap", counts_from=first, counts_to=last)
        assert_same(pieces(fold), walk(rows, times[-1], "gap", first, last), seed)
        counted = [row["observed_at"] for row in [*take(fold, "change")]]
        assert all(first <= at < last for at in counted)


@pytest.mark.slow
def test_the_buckets_together_have_each_row_once() -> None:
    for seed in seeds(100):
        rows = random_rows(seed)
        end, n = rows[-1]["observed_at"], seed % 5 + 2
        whole = folded(rows, end)
        parts = [folded(rows, end, buckets=n, bucket=i) for i in range(n)]
        for name in TABLES:
            rows_of = [repr(row) for part in parts for row in take(part, name)]
            assert Counter(rows_of) == Counter(repr(row) for row in take(whole, name)), seed


@pytest.mark.slow
def test_a_fold_goes_on_from_a_state_at_any_row() -> None:
    for seed in seeds(200):
        rows = random_rows(seed)
        end, at = rows[-1]["observed_at"], random.Random(seed).randrange(len(rows) + 1)
        whole, first = folded(rows, end), folded(rows[:at])
        state = first.state()
        then = Fold("cluster", "session", state=state)
        assert then.state() == state
        then.add(as_table(rows[at:]))
        then.end(end, "open")
        for name in TABLES:
            assert take(first, name) + take(then, name) == take(whole, name), (seed, at, name)


@pytest.mark.slow
def test_batches_of_any_size_give_the_same_rows() -> None:
    for seed in seeds(50):
        rows = random_rows(seed)
        whole, parts = folded(rows, rows[-1]["observed_at"]), Fold("cluster", "session")
        for batch in as_table(rows).to_batches(max_chunksize=seed % 7 + 1):
            parts.add(batch)  # a slice, with an offset
        parts.end(rows[-1]["observed_at"], "open")
        for name in TABLES:
            assert take(parts, name) == take(whole, name), seed


SQL = """
with rows as (
    select *, partition is not null and kind in ('topic_added', 'topic_recreated',
        'partitions_added', 'leader_changed', 'isr_changed', 'replicas_changed',
        'leader_epoch_changed', 'offline_changed') as stateful,
        kind in ('topic_added', 'topic_recreated', 'partitions_added') as whole
    from changes
), states as (
    select topic, partition, version, observed_at, false as cut, kind,
        if(version = $mark, 'baseline', kind) as reason,
        if(whole or kind in ('leader_changed', 'leader_epoch_changed'),
            {'known': true, 'leader': new_leader, 'epoch': new_leader_epoch}, null) as led,
        if(whole or topic_id is not null and kind <> 'offline_changed',
            {'id': topic_id}, null) as named,
        if(whole or kind = 'isr_changed', {'isr': list_sort(new_isr)}, null) as synced,
        if(whole or kind = 'replicas_changed', {'r': new_replicas}, null) as placed,
        if(whole or kind = 'offline_changed', {'o': list_sort(new_offline)}, null) as lost
    from rows where stateful
), ends as (
    select topic, p.partition, version, observed_at, true as cut, kind, kind as reason,
        {'known': false, 'leader': null::int, 'epoch': null::int} as led,
        {'id': null::varchar} as named, {'isr': null::int[]} as synced,
        {'r': null::int[]} as placed, {'o': null::int[]} as lost
    from rows join (select distinct topic, partition from states) p using (topic)
    where rows.partition is null
        and kind in ('topic_absent', 'topic_removed', 'topic_recreated', 'topic_error')
), events as (
    select topic, partition, version, max(observed_at) as seen, bool_or(cut) as cut,
        arg_min(reason, list_position($order, reason)) as reason,
        last(led order by cut desc) filter (led is not null) as led,
        last(named order by cut desc) filter (named is not null) as named,
        last(synced order by cut desc) filter (synced is not null) as synced,
        last(placed order by cut desc) filter (placed is not null) as placed,
        last(lost order by cut desc) filter (lost is not null) as lost
    from (from states union all by name from ends) group by all
), carried as (
    select topic, partition, version, seen, cut, reason,
        last_value(led ignore nulls) over w as led,
        last_value(named ignore nulls) over w as named,
        last_value(synced ignore nulls) over w as synced,
        last_value(placed ignore nulls) over w as placed,
        last_value(lost ignore nulls) over w as lost
    from events window w as (partition by topic, partition order by version)
), compared as (
    select *, {'a': led, 'b': named.id, 'c': synced.isr, 'd': placed.r, 'e': lost.o} as state,
        lag(state) over (partition by topic, partition order by version) as before
    from carried
), changed as (
    from compared where cut or state is distinct from before
), periods as (
    select *, lead(seen) over w as ended, lead(reason) over w as ended_by
    from changed window w as (partition by topic, partition order by version)
)
select topic, partition, named.id, led.leader, led.epoch, synced.isr, placed.r, lost.o,
    seen, coalesce(ended, $end), reason, coalesce(ended_by, 'gap')
from periods where led.known
"""


@pytest.mark.slow
def test_a_fold_of_any_history_agrees_with_a_query_of_duckdb() -> None:
    order = ["topic_absent", "topic_removed", "topic_recreated", "topic_error", "topic_added"]
    order += ["baseline", "partitions_added", "leader_changed", "isr_changed"]
    order += ["replicas_changed", "leader_epoch_changed", "offline_changed"]
    for seed in seeds(15):
        rows = apart([row for row in random_rows(seed, quiet=True) if "detail" not in row])
        table = as_table(rows).drop(["observed_at"])
        changes = table.append_column("observed_at", pa.array([r["observed_at"] for r in rows]))
        end = rows[-1]["observed_at"]
        with duckdb.connect() as connection:
            connection.register("changes", changes)
            found = connection.execute(
                SQL, {"mark": rows[0]["version"], "order": order, "end": end}
            ).fetchall()
        fold = folded(rows, end, "gap")
        wanted = []
        for p in (p for p in pieces(fold) if p.key[0] == "partition"):
            state = (None if v is None else list(v) if type(v) is tuple else v for v in p.state[:6])
            times = (p.began_at, p.ended_at, p.began_by, p.ended_by)
            wanted.append((*p.key[1:], *state, *times))
        a, b = Counter(map(repr, found)), Counter(map(repr, wanted))
        assert (a - b, b - a) == (Counter(), Counter()), seed


# ---- partitions ---------------------------------------------------------------------------------


def test_a_change_of_leader_ends_one_piece_and_begins_another() -> None:
    led = {"partition": 0, "new_leader": 2, "new_leader_epoch": 6, "unseen_us": 300, "offset": 9}
    rows = recording({"kind": "leader_changed", "source": "hint", "topic_id": "A" * 22} | led)
    first, second = take(folded(rows, NOON + 5_000_000), "partition_interval")
    assert (first["leader"], first["leader_epoch"], first["us"]) == (1, 5, 1_000_000)
    assert (first["began_by"], first["ended_by"]) == ("baseline", "leader_changed")
    assert (first["isr"], first["replicas"]) == ((1, 2), (1, 2))
    assert {
        "cluster_id": "cluster",
        "origin": "session",
        "source": "hint",
        "unseen_us": 300,
        "version": 8,
        "offset": 9,
        "ended_by": "open",
        "us": 4_000_000,
    }.items() <= second.items()


def test_equal_states_begin_no_piece() -> None:
    rows = recording(
        {"kind": "isr_changed", "partition": 0, "new_isr": (1, 2)},
        {"kind": "leader_changed", "partition": 0, "new_leader": 1, "new_leader_epoch": 5},
    )
    assert brief(rows, NOON + 5_000_000) == [(0, 5, "baseline", "open")]


@pytest.mark.parametrize(
    ("kind", "column"), [("replicas_changed", "new_replicas"), ("offline_changed", "new_offline")]
)
def test_a_change_of_lists_ends_the_piece_before_it(kind: str, column: str) -> None:
    rows = recording({"kind": kind, "partition": 0, column: (2, 1)})
    assert brief(rows, NOON + 3_000_000) == [(0, 1, "baseline", kind), (1, 3, kind, "open")]


def test_a_topic_id_may_first_be_named_by_a_change_of_leader() -> None:
    other = {"topic": "u", "topic_id": "B" * 22, "new_leader": 3, "new_leader_epoch": 0}
    rows = recording(
        {"kind": "leader_changed", "partition": 4, **other},
        {"kind": "topic_removed", "topic": "u", "topic_id": "B" * 22},
    )
    fold = folded(rows, NOON + 3_000_000)
    found = [row for row in take(fold, "partition_interval") if row["topic"] == "u"]
    assert [(row["topic_id"], row["isr"], row["us"]) for row in found] == [
        ("B" * 22, None, 1_000_000)
    ]
    # No record has listed its partitions.
    (topic,) = [row for row in take(fold, "topic_interval") if row["topic"] == "u"]
    assert (topic["partitions"], topic["partial"]) == (1, True)


@pytest.mark.parametrize("kind", ["topic_absent", "topic_removed", "topic_error"])
def test_a_topic_that_is_gone_has_no_piece(kind: str) -> None:
    rows = recording({"kind": kind}, {"kind": "internal_changed"})
    assert brief(rows, NOON + 9_000_000) == [(0, 1, "baseline", kind)]
    assert brief(rows, NOON + 9_000_000, "topic_interval") == [(0, 1, "baseline", kind)]


def test_a_recreated_topic_is_another_one_even_if_nothing_differs() -> None:
    state = {"new_leader": 1, "new_leader_epoch": 5, "new_isr": (1, 2), "new_replicas": (1, 2)}
    again = {"kind": "topic_recreated", "topic_id": "A" * 22}
    rows = recording(again, {"same": True, "partition": 0, **again, **state})
    assert brief(rows, NOON + 2_000_000) == [
        (0, 1, "baseline", "topic_recreated"),
        (1, 2, "topic_recreated", "open"),
    ]


def test_min_isr_is_state_until_it_is_no_longer_known() -> None:
    rows = recording(
        {"kind": "config_changed", "detail": "min.insync.replicas=2"},
        {"kind": "config_changed", "detail": "min.insync.replicas=2"},
        {"kind": "config_changed", "detail": "min.insync.replicas"},
    )
    fold = folded(rows, NOON + 5_000_000)
    found = take(fold, "partition_interval")
    assert [(row["min_isr"], row["us"]) for row in found] == [
        (None, 1_000_000),
        (2, 2_000_000),
        (None, 2_000_000),
    ]
    (config,) = take(fold, "config_interval")
    assert {"resource_type": "topic", "resource": "t", "key": "min.insync.replicas"}.items() <= (
        config.items()
    )
    assert (config["value"], config["us"]) == ("2", 2_000_000)


def broker(kind: str, number: int, detail: str) -> Row:
    return {"kind": f"broker_{kind}", "broker": number, "detail": detail, "topic": None}


def test_a_configuration_that_is_told_later_in_a_version_begins_at_its_own_time() -> None:
    told = {"kind": "config_changed", "detail": "min.insync.replicas=2", "same": True}
    rows = recording(told, {"kind": "isr_changed", "partition": 0, "new_isr": (1,)})
    rows[-2]["observed_at"] += 500_000
    assert brief(rows, NOON + 2_000_000) == [
        (0.0, 0.5, "baseline", "config_changed"),
        (0.5, 1.0, "config_changed", "isr_changed"),
        (1.0, 2.0, "isr_changed", "open"),
    ]
    assert brief(rows, NOON + 2_000_000, "config_interval") == [
        (0.5, 2.0, "config_changed", "open")
    ]
    assert [row["kind"] for row in take(folded(rows), "change")] == [
        "config_changed",
        "isr_changed",
    ]


def test_racks_are_counted_once_each_broker_has_given_its_rack() -> None:
    rows = recording(
        broker("added", 1, "::1:9092 rack=a"),
        broker("added", 2, "h2:9092 rack=a b"),
        broker("removed", 2, "h2:9092 rack=a b"),
        broker("added", 2, "h2:9092 rack=a"),
    )
    fold = folded(rows, NOON + 9_000_000)
    found = take(fold, "partition_interval")
    assert [(row["racks"], row["began_by"]) for row in found] == [
        (None, "baseline"),
        (2, "broker_added"),
        (1, "broker_added"),
    ]
    brokers = take(fold, "broker_interval")
    assert [(row["broker"], row["host"], row["rack"], row["us"]) for row in brokers] == [
        (2, "h2", "a b", 1_000_000),
        (1, "::1", "a", 8_000_000),
        (2, "h2", "a", 5_000_000),
    ]


# ---- time ---------------------------------------------------------------------------------------


def test_pieces_are_cut_at_each_midnight() -> None:
    rows = recording({"kind": "internal_changed"}, at=NOON)
    rows[-1]["observed_at"] = NOON + 2 * DAY
    half = 43_200.0
    assert brief(rows, NOON + 2 * DAY) == [
        (0, half, "baseline", "midnight"),
        (half, 3 * half, "midnight", "midnight"),
        (3 * half, 4 * half, "midnight", "open"),
    ]


def test_cut_ends_pieces_at_a_midnight_once() -> None:
    fold = folded(recording())
    midnight = EPOCH + timedelta(microseconds=20_001 * DAY)
    fold.cut(midnight)
    fold.cut(midnight)
    (piece,) = take(fold, "partition_interval")
    assert (piece["ended_at"], piece["ended_by"]) == (20_001 * DAY, "midnight")
    with pytest.raises(ArgumentError, match="not a midnight"):
        fold.cut(midnight + timedelta(seconds=1))


def test_a_record_behind_a_cut_begins_no_earlier_than_the_cut() -> None:
    fold = folded(recording())
    midnight = 20_001 * DAY
    fold.cut(midnight)
    late = {"version": 8, "observed_at": midnight - 5, "kind": "leader_changed", "topic": "t"}
    fold.add(as_table([late | {"partition": 0, "new_leader": 2, "new_leader_epoch": 6}]))
    fold.end(midnight + 7, "gap")
    found = take(fold, "partition_interval")
    assert [(row["leader"], row["began_at"], row["ended_at"]) for row in found] == [
        (1, NOON, midnight),
        (2, midnight, midnight + 7),
    ]
    (change,) = take(fold, "leader_change")
    assert change["observed_at"] == midnight
    assert fold.stats()["clocks_back"] == 1


def test_a_baseline_at_midnight_goes_on_from_the_day_before() -> None:
    rows = recording(at=20_001 * DAY)
    (piece,) = take(folded(rows, 20_001 * DAY + 5), "partition_interval")
    assert piece["began_by"] == "midnight"


def test_a_resync_ends_what_was_seen_before() -> None:
    rows = recording(
        {"kind": "resync", "topic": None},
        {"same": True, "kind": "topic_added", "partition": 0, "new_leader": 2},
    )
    assert brief(rows, NOON + 3_000_000) == [(0, 0, "baseline", "gap"), (1, 3, "baseline", "open")]


def test_times_never_run_backwards() -> None:
    led = {"kind": "leader_changed", "partition": 0, "new_leader": 2, "new_leader_epoch": 6}
    rows = recording(led)
    rows[-1]["observed_at"] = NOON - 5
    fold = folded(rows, NOON + 1_000_000)
    assert fold.stats()["clocks_back"] == 1
    assert [row["us"] for row in take(fold, "partition_interval")] == [0, 1_000_000]


# ---- changes ------------------------------------------------------------------------------------


def test_each_change_of_leader_is_a_row() -> None:
    led = {"old_leader": 1, "new_leader": 2, "old_leader_epoch": 5, "new_leader_epoch": 8}
    rows = recording(
        {"kind": "leader_changed", "partition": 0, "source_broker": 3, **led},
        {"kind": "leader_changed", "partition": 0, "new_leader": 2},
    )
    first, second = take(folded(rows), "leader_change")
    assert led.items() <= first.items()
    assert (first["elections"], first["recordings"], first["source_broker"]) == (3, 1, 3)
    assert (second["elections"], second["new_leader_epoch"]) == (None, None)


def test_each_other_change_is_a_row_but_for_the_baseline() -> None:
    rows = recording(
        {"kind": "isr_changed", "partition": 0, "old_isr": (2, 1), "new_isr": (1,)},
        {"kind": "observed_to", "topic": None},
    )
    (change,) = take(folded(rows), "change")
    assert (change["kind"], change["old_isr"], change["new_isr"]) == ("isr_changed", (2, 1), (1,))


# ---- metadata logs ------------------------------------------------------------------------------


def test_a_log_tells_whether_a_broker_is_fenced_or_shuts_down() -> None:
    def flag(name: str, epoch: int) -> Row:
        known = {"broker": 1, "broker_epoch": epoch, "offset": 1, "source": "log"}
        return {"kind": f"broker_{name}", "topic": None, **known}

    def registered(kind: str, epoch: int) -> Row:
        return broker(kind, 1, "h:1") | {"broker_epoch": epoch, "offset": 1, "source": "log"}

    rows = recording(
        registered("added", 5),
        flag("fenced", 5) | {"same": True},
        flag("unfenced", 5),
        flag("shutting_down", 5),
        registered("changed", 5),  # the same process
        flag("shutting_down", 5) | {"same": True},
        flag("fenced", 5),
        registered("changed", 9),
        flag("unfenced", 9),
        registered("changed", 12),
    )
    found = take(folded(rows, NOON + 10_000_000), "broker_interval")
    names = ("began_by", "us", "fenced", "shutting_down", "broker_epoch")
    assert [tuple(row[name] for name in names) for row in found] == [
        ("broker_added", 1_000_000, True, False, 5),
        ("broker_unfenced", 1_000_000, False, False, 5),
        ("broker_shutting_down", 2_000_000, False, True, 5),
        ("broker_fenced", 1_000_000, True, True, 5),
        ("broker_changed", 1_000_000, True, False, 9),
        ("broker_unfenced", 3_000_000, False, False, 9),
    ]


def test_a_log_tells_reassignments_and_eligible_leaders() -> None:
    moved = {"kind": "reassignment_changed", "partition": 0, "partition_epoch": 4}
    rows = recording(
        moved | {"new_adding": (4, 3), "new_removing": ()},
        {"kind": "config_changed", "detail": "min.insync.replicas=2"},
        {"kind": "elr_changed", "partition": 0, "partition_epoch": 6, "new_elr": (2,)},
    )
    found = take(folded(rows, NOON + 4_000_000), "partition_interval")
    names = ("began_by", "adding", "removing", "elr", "min_isr", "partition_epoch")
    assert [tuple(row[name] for name in names) for row in found] == [
        ("baseline", None, None, None, None, None),
        ("reassignment_changed", (3, 4), (), None, None, 4),
        ("config_changed", (3, 4), (), None, 2, 4),
        ("elr_changed", (3, 4), (), (2,), 2, 6),
    ]


def test_the_min_isr_of_all_brokers_counts_for_topics_without_their_own() -> None:
    def every(detail: str) -> Row:
        return {"kind": "config_changed", "topic": None, "offset": 1, "detail": detail}

    own = {"kind": "config_changed", "detail": "min.insync.replicas"}
    rows = recording(
        every("min.insync.replicas=2"),
        own | {"detail": "min.insync.replicas=1"},
        every("min.insync.replicas=3"),
        own,
        every("min.insync.replicas"),
    )
    fold = folded(rows, NOON + 6_000_000)
    found = take(fold, "partition_interval")
    assert [(row["min_isr"], row["us"]) for row in found] == [
        (None, 1_000_000), (2, 1_000_000), (1, 2_000_000), (3, 1_000_000), (None, 1_000_000),
    ]  # fmt: skip
    configs = [(row["resource_type"], row["resource"]) for row in take(fold, "config_interval")]
    assert configs == [("broker", ""), ("topic", "t"), ("broker", "")]


def test_a_min_isr_of_polls_counts_where_a_log_knows_none() -> None:
    def told(source: str, detail: str, topic: str | None = "t") -> Row:
        offset = 1 if source == "log" else None
        about = {"kind": "config_changed", "topic": topic, "source": source, "offset": offset}
        return about | {"detail": f"min.insync.replicas{detail}"}

    rows = recording(
        told("poll", "=1"),
        told("log", "=2"),
        told("poll", "=2"),  # late, and not needed
        told("log", ""),
        told("log", "=3", None),
        told("poll", "=4"),
        told("log", "", None),
    )
    fold = folded(rows, NOON + 8_000_000)
    found = take(fold, "partition_interval")
    assert [(row["min_isr"], row["us"]) for row in found] == [
        (None, 1_000_000), (1, 1_000_000), (2, 3_000_000), (3, 2_000_000), (4, 1_000_000),
    ]  # fmt: skip
    changes = take(fold, "change")
    assert [row["source"] for row in changes] == ["poll", "log", "log", "log", "log"]
    configs = [(row["resource_type"], row["value"]) for row in take(fold, "config_interval")]
    assert configs == [("topic", "1"), ("topic", "2"), ("broker", "3")]


def test_a_term_of_a_controller_ends_at_its_last_record() -> None:
    def leads(broker: int, epoch: int, unseen: int | None = None) -> Row:
        known = {"broker": broker, "new_leader_epoch": epoch, "unseen_us": unseen}
        return {"kind": "controller_changed", "topic": None, **known}

    rows = recording(leads(1, 2), leads(1, 2, 9), leads(3, 5, 400_000), leads(2, 6, 5_000_000))
    found = take(folded(rows, NOON + 5_000_000), "controller")
    names = ("broker", "epoch", "us", "began_by", "ended_by")
    by = "controller_changed"
    assert [tuple(row[name] for name in names) for row in found] == [
        (1, 2, 1_600_000, by, by),
        (None, 2, 400_000, by, by),
        (3, 5, 0, by, by),
        (None, 5, 1_000_000, by, by),
        (2, 6, 1_000_000, by, "open"),
    ]


def test_a_topic_that_ends_last_in_a_commit_of_a_log_has_ended() -> None:
    led = {"partition": 0, "new_leader": 2, "new_leader_epoch": 6, "offset": 1}
    removed = {"kind": "topic_removed", "same": True, "offset": 2}
    rows = recording({"kind": "leader_changed", **led}, removed)
    assert brief(rows, NOON + 2_000_000) == [(0, 1, "baseline", "topic_removed")]


def test_an_unclean_election_is_a_change_with_its_leader() -> None:
    led = {"partition": 0, "new_leader": 2, "new_leader_epoch": 6}
    rows = recording({"kind": "leader_changed", **led}, {"kind": "unclean_election", **led})
    (change,) = take(folded(rows), "change")
    assert (change["kind"], change["broker"]) == ("unclean_election", 2)


# ---- what is passed over ------------------------------------------------------------------------


def test_kinds_that_a_fold_passes_over_are_counted_and_make_what_follows_partial() -> None:
    rows = recording({"kind": "quota_changed"})
    fold = folded(rows, NOON + 2_000_000)
    assert [row["partial"] for row in take(fold, "partition_interval")] == [True]
    assert fold.stats()["unknown_kinds"] == 1


def test_rows_before_the_observation_do_not_count() -> None:
    fold = folded(recording()[1:], NOON + 1)
    assert fold.stats()["before"] == 2
    assert pieces(fold) == []


@pytest.mark.parametrize("detail", [None, "", "host", "host:", ":9092", "host:x"])
def test_a_broker_without_an_endpoint_makes_what_follows_partial(detail: str | None) -> None:
    fold = folded(recording(broker("added", 1, detail or "") | {"detail": detail}), NOON + 10)
    assert take(fold, "broker_interval") == []
    assert (fold.stats()["bad_details"], fold.stats()["partial"]) == (1, True)


def test_missing_columns_are_null_and_unknown_ones_are_passed_over() -> None:
    table = as_table(recording()).drop(["source", "new_isr", "offset", "unseen_us"])
    fold = Fold("cluster", "session")
    fold.add(table.append_column("more", pa.array([1] * table.num_rows)))
    fold.end(NOON, "gap")
    (piece,) = take(fold, "partition_interval")
    assert (piece["isr"], piece["source"], piece["replicas"]) == (None, None, (1, 2))


@pytest.mark.parametrize("name", ["version", "observed_at", "kind"])
def test_a_column_that_every_record_has_may_not_be_missing(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"column {name} is missing"):
        Fold("cluster", "session").add(as_table(recording()).drop([name]))


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("topic", pa.array(["t"] * 3, pa.large_string())),
        ("topic", pa.DictionaryArray.from_arrays(pa.array([0] * 3, pa.int8()), pa.array(["t"]))),
        ("topic", pa.array([7] * 3).dictionary_encode()),
        ("partition", pa.array([0] * 3, pa.int32()).dictionary_encode()),
        ("partition", pa.array([0] * 3, pa.int64())),
        ("new_isr", pa.array([[1]] * 3, pa.list_(pa.int64()))),
        ("new_isr", pa.array([[1]] * 3, pa.large_list(pa.int32()))),
        ("observed_at", pa.array([1] * 3, pa.int64())),
    ],
)
def test_a_column_of_another_type_is_refused_by_name(name: str, column: Any) -> None:
    table = as_table(recording())
    other = table.set_column(table.schema.get_field_index(name), name, column)
    fold = Fold("cluster", "session")
    with pytest.raises(ArgumentError, match=f"column {name} has another type"):
        fold.add(other)
    assert fold.stats()["rows"] == 0


def test_texts_in_a_dictionary_give_the_same_rows() -> None:
    texts = ("kind", "source", "topic", "topic_id", "detail")
    for seed in seeds(20):
        rows = random_rows(seed)
        table = as_table(rows)
        plain = folded(rows, rows[-1]["observed_at"])
        coded = Fold("cluster", "session")
        for name in texts:
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table[name].dictionary_encode())
        for batch in table.to_batches(max_chunksize=7):
            coded.add(batch.slice(0, 2))
            coded.add(batch.slice(2))
        assert coded.state() == folded(rows).state(), seed
        coded.end(rows[-1]["observed_at"], "open")
        for name in TABLES:
            assert take(coded, name) == take(plain, name), (seed, name)


def test_a_null_in_a_dictionary_is_refused() -> None:
    table = as_table(recording())
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 3, pa.int32()), pa.array(["t", None]))
    other = table.set_column(table.schema.get_field_index("topic"), "topic", column)
    with pytest.raises(ArgumentError, match="column topic has a null in its dictionary"):
        Fold("cluster", "session").add(other)


@pytest.mark.slow
def test_a_fold_stops_once_as_many_rows_wait_as_it_may_have() -> None:
    stops = 0
    for seed in seeds(50):
        rows = random_rows(seed)
        end, left = rows[-1]["observed_at"], as_table(rows)
        whole, fold = folded(rows, end), Fold("cluster", "session", most_waiting=200)
        made = Counter[str]()
        while left.num_rows:
            before = left.num_rows
            left = left.slice(fold.add(left))
            assert left.num_rows < before
            stops += left.num_rows > 0
            made.update(f"{name} {row!r}" for name in TABLES for row in take(fold, name))
        fold.end(end, "open")
        made.update(f"{name} {row!r}" for name in TABLES for row in take(fold, name))
        wanted = Counter(f"{name} {row!r}" for name in TABLES for row in take(whole, name))
        assert made == wanted, seed
    assert stops > 50


def test_a_fold_makes_only_the_tables_that_are_wanted() -> None:
    rows = random_rows(1)
    every = folded(rows, rows[-1]["observed_at"])
    for name in TABLES:
        one = folded(rows, rows[-1]["observed_at"], tables=[name])
        for other in (each for each in TABLES if each != name):
            with pytest.raises(ArgumentError, match="no table of this fold"):
                take(one, other)
        assert take(one, name) == take(every, name)
    none = folded(rows, tables=())
    assert none.stats()["waiting"] == 0
    assert none.state() == folded(rows).state()
    with pytest.raises(ValueError, match="table must be one of"):
        Fold("cluster", "session", tables=["topics"])


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        ({"version": 1}, "not in order"),
        ({"version": -1}, "a version is -1"),
        ({"observed_at": -5}, "a time in microseconds is -5"),
        ({"observed_at": 2**62}, "a time in microseconds"),
        ({"observed_at": NOON + 33 * DAY}, "32 days after the last record or cut"),
        ({"kind": None}, "column kind is null in row 3"),
        ({"version": None}, "column version is null in row 3"),
        ({"kind": "isr_changed", "partition": 2**31 - 1}, "a partition is 2147483647"),
        ({"topic": "x" * 32_768}, "a topic's name is 32768"),
        ({"new_isr": tuple(range(65_537))}, "a list is 65537"),
    ],
)
def test_a_record_that_no_recording_has_loses_nothing_before_it(bad: Row, why: str) -> None:
    rows = recording({"kind": "isr_changed", "partition": 0, "new_isr": (1,)})
    rows[-1] |= bad
    fold = Fold("cluster", "session")
    with pytest.raises(MalformedError, match=why):
        fold.add(as_table(rows))
    assert fold.stats()["rows"] == 3
    fold.end(NOON + 1_000_000, "gap")
    assert [row["us"] for row in take(fold, "partition_interval")] == [1_000_000]


def test_days_without_a_record_make_rows_only_if_the_caller_cuts() -> None:
    fold = folded(recording())
    for days in (33, 36 * 365):
        with pytest.raises(ArgumentError, match="32 days"):
            fold.cut(20_000 * DAY + days * DAY)
        with pytest.raises(ArgumentError, match="32 days"):
            fold.end(NOON + days * DAY, "open")
    assert fold.stats()["waiting"] == 0
    for day in range(20_001, 20_501):
        fold.cut(day * DAY)
    assert len(take(fold, "partition_interval")) == 500
    again = Fold("cluster", "session", state=fold.state())
    change = {"kind": "isr_changed", "partition": 0, "new_isr": (1,)}
    again.add(as_table([recording(change, at=20_500 * DAY)[-1]]))
    assert again.state() != fold.state()


def test_years_between_two_observations_make_no_row() -> None:
    later = [
        {**row, "version": row["version"] + 1, "observed_at": row["observed_at"] + 13_000 * DAY}
        for row in recording()
    ]
    fold = folded(recording())
    fold.end(NOON + 1, "gap")
    fold.add(as_table(later))
    fold.end(NOON + 13_000 * DAY + 1, "gap")
    assert [row["us"] for row in take(fold, "partition_interval")] == [1, 1]


def test_a_null_in_a_list_is_refused() -> None:
    table = as_table(recording()[:1])
    column = pa.array([[1, None]], pa.list_(pa.int32()))
    other = table.set_column(table.schema.get_field_index("new_isr"), "new_isr", column)
    with pytest.raises(ArgumentError, match="column new_isr has a null in a list"):
        Fold("cluster", "session").add(other)


# ---- the object ---------------------------------------------------------------------------------


def test_the_state_of_another_fold_is_refused() -> None:
    state = folded(recording()).state()
    for cluster, origin in (("other", "session"), ("cluster", "other")):
        with pytest.raises(ArgumentError, match="another cluster"):
            Fold(cluster, origin, state=state)
    with pytest.raises(ArgumentError, match="another cluster"):
        Fold("cluster", "session", buckets=2, bucket=0, state=state)


def test_a_state_of_another_version_is_refused_with_both_versions() -> None:
    state = bytearray(folded(recording()).state())
    state[8] = 9
    with pytest.raises(UnsupportedVersionError, match="has version 9.* reads version 3"):
        Fold("cluster", "session", state=state)


def test_a_damaged_state_is_refused() -> None:
    state = folded(recording()).state()
    for at in range(len(state)):
        damaged = bytearray(state)
        damaged[at] ^= 16
        with pytest.raises((MalformedError, UnsupportedVersionError)):
            Fold("cluster", "session", state=damaged)
        with pytest.raises((MalformedError, UnsupportedVersionError)):
            Fold("cluster", "session", state=state[:at])


def test_the_state_does_not_depend_on_the_order_of_topics_that_are_gone() -> None:
    def rows(*names: str) -> list[Row]:
        added = [{"kind": "topic_added", "topic": name, "same": True} for name in names]
        return recording(*added, {"kind": "topic_removed", "topic": "b"})

    one, other = folded(rows("a", "b", "c")), folded(rows("c", "b", "a"))
    for fold in (one, other):
        fold.cut(20_001 * DAY)
    assert one.state() == other.state()


def test_taken_rows_are_gone_and_can_be_read_once() -> None:
    fold = folded(recording(), NOON + 1)
    taken = fold.take("partition_interval")
    assert fold.stats()["waiting"] == 1  # of the topic
    assert pa.table(taken).num_rows == 1
    with pytest.raises(ValueError, match="read before"):
        pa.table(taken)
    assert pa.table(fold.take("partition_interval")).num_rows == 0


@pytest.mark.parametrize("name", TABLES)
def test_an_empty_table_has_its_columns(name: Any) -> None:
    empty = pa.table(Fold("cluster", "session").take(name))
    full = pa.table(folded(random_rows(1), START + 20 * DAY).take(name))
    assert empty.schema == full.schema
    assert empty.schema[0] == pa.field("cluster_id", pa.string(), nullable=False)


def test_memory_follows_the_state_and_not_the_number_of_changes() -> None:
    table = pa.concat_tables([as_table(recording())])
    fold = Fold("cluster", "session")
    fold.add(table)
    after = fold.stats()["memory"]
    many: list[Row] = []
    for i in range(8_000):
        # A new list, and a topic that comes and goes, in each version.
        rows: list[Row] = [
            {"kind": "isr_changed", "topic": "t", "partition": 0, "new_isr": (i,)},
            {"kind": "topic_added", "topic": f"topic-{i}", "partition": 0},
            {"kind": "topic_removed", "topic": f"topic-{i - 1}"},
        ]
        many += [row | {"version": 8 + i, "observed_at": NOON + i} for row in rows]
    fold.add(as_table(many))
    assert fold.stats()["memory"] < after + 160_000


def test_a_partition_with_a_high_number_costs_as_much_as_any_other() -> None:
    high = {"kind": "topic_added", "partition": 2**20 - 1, "new_leader": 3}
    rows = recording(*(high | {"topic": f"topic-{i}", "same": i > 0} for i in range(100)))
    fold = folded(rows)
    assert fold.stats()["memory"] < 200_000
    state = fold.state()
    assert len(state) < 10_000
    for each in (fold, Fold("cluster", "session", state=state)):
        each.end(NOON + DAY // 4, "open")
        found = take(each, "partition_interval")
        assert [row["partition"] for row in found] == [0] + 100 * [2**20 - 1]


def test_partitions_may_come_in_any_order() -> None:
    numbers = random.sample(range(1, 2**20), 3_000)
    rows = recording(
        *({"kind": "partitions_added", "partition": n, "new_leader": n} for n in numbers),
        *({"kind": "leader_changed", "partition": n, "new_leader": n + 1} for n in numbers),
    )
    fold = folded(rows)
    take(fold, "partition_interval")
    again = Fold("cluster", "session", state=fold.state())
    for each in (fold, again):
        each.end(NOON + DAY // 4, "open")
        rows_at_end = [r for r in take(each, "partition_interval") if r["ended_by"] == "open"]
        found = [(row["partition"], row["leader"]) for row in rows_at_end]
        assert found == [(0, 1), *((n, n + 1) for n in sorted(numbers))]


@pytest.mark.slow
def test_brokers_that_are_gone_are_freed_when_there_are_many() -> None:
    fold = folded(recording())
    for first in range(10, 200_000, 5_000):
        many = range(first, first + 5_000)
        rows = recording(
            *(broker("broker_added", n, f"host:{n} rack=a") for n in many),
            *(broker("broker_removed", n, "") for n in many),
        )
        numbered = [{**row, "version": row["version"] + 3 * first} for row in rows[3:]]
        fold.add(as_table([{**row, "observed_at": NOON + 3 * first} for row in numbered]))
    assert fold.stats()["memory"] < 3_000_000
    again = Fold("cluster", "session", state=fold.state())
    assert again.state() == fold.state()
    assert len(fold.state()) < 100_000


class Given:
    """Gives the same capsules each time."""

    def __init__(self, records: Any) -> None:
        self.array = records.__arrow_c_array__()

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.array


class GivenStream:
    def __init__(self, records: Any) -> None:
        self.stream = records.__arrow_c_stream__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.stream


def test_a_batch_that_was_read_before_is_refused() -> None:
    fold = Fold("cluster", "session")
    batch = as_table(recording()).combine_chunks().to_batches()[0]
    for given, read in (
        (Given(batch), pa.record_batch),
        (GivenStream(pa.table([batch.column(0)], ["version"])), pa.table),
    ):
        read(given)
        with pytest.raises(ArgumentError, match="read before: pass"):
            fold.add(given)
    assert fold.stats()["rows"] == 0


def test_offsets_beyond_a_buffer_are_refused() -> None:
    table = as_table(recording()).combine_chunks()
    offsets = np.zeros(4, np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"abc")]
    texts = pa.Array.from_buffers(pa.string(), 3, buffers)
    place = table.schema.get_field_index("topic")
    damaged = table.set_column(place, "topic", texts)
    offsets[:] = 0, 1, 2, 1 << 30
    fold = Fold("cluster", "session")
    for records in (damaged, damaged.to_batches()[0]):
        with pytest.raises(ArgumentError, match="Arrow data is damaged"):
            fold.add(records)
    assert fold.stats()["rows"] == 0


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="bucket must be given"):
        Fold("cluster", "session", buckets=2)
    with pytest.raises(ValueError, match="counts_from lies after counts_to"):
        Fold("cluster", "session", counts_from=2, counts_to=1)
    with pytest.raises(ValueError, match="no time zone"):
        Fold("cluster", "session", counts_from=datetime(2025, 1, 1))
    fold = Fold("cluster", "session")
    with pytest.raises(ValueError, match="by must be one of open, gap, midnight"):
        fold.end(0, "why")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="table must be one of"):
        fold.take("nothing")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an Arrow batch, table or stream, not list"):
        fold.add([])  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="16383 bytes"):
        Fold("c" * 16_384, "session")


@pytest.mark.parametrize("clone", [copy.copy, pickle.dumps])
def test_a_fold_is_not_copied(clone: Any) -> None:
    with pytest.raises(TypeError, match="cannot be pickled or copied"):
        clone(Fold("cluster", "session"))


def test_a_second_thread_is_refused() -> None:
    fold, entered, leave = Fold("cluster", "session"), threading.Event(), threading.Event()
    table = as_table(recording())

    def batches() -> Any:
        yield table.to_batches()[0]
        entered.set()
        leave.wait(30)

    reader = pa.RecordBatchReader.from_batches(table.schema, batches())
    thread = threading.Thread(target=fold.add, args=(reader,))
    thread.start()
    entered.wait(30)
    with pytest.raises(RuntimeError, match="another thread uses this fold"):
        fold.stats()
    leave.set()
    thread.join()
    assert fold.stats()["rows"] == 3
