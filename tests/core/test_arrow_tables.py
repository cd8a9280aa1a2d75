"""Compares Arrow tables, as pyarrow, polars and DuckDB read them, with the objects of lookups."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import duckdb
import frames
import pyarrow as pa
import pytest
from clocks import Clock
from frames import B, P, T
from large_frames import large_response

from rdmeta import ALL, MetadataCache
from rdmeta.history.schema import CHANGE_SCHEMA
from rdmeta.model import Change, Changes, Topic

TABLES = ("brokers", "topics", "partitions", "replicas")
Rows = list[tuple[Any, ...]]


def apply_response(cache: MetadataCache, *topics: T, **more: Any) -> None:
    """Applies one Metadata v12 answer; `more` are arguments of frames.response()."""
    cache.apply(frames.response(12, topics, **more), 12, None, 1)


# ---- readers ------------------------------------------------------------------------------------


def by_pyarrow(table: Any) -> Rows:
    read = pa.table(table)
    read.validate(full=True)
    return [tuple(row.values()) for row in read.to_pylist()]


def by_polars(table: Any) -> Rows:
    import polars as pl

    return pl.DataFrame(table).rows()


def by_duckdb(arrow: Any) -> Rows:
    with duckdb.connect() as connection:
        connection.sql("set timezone = 'UTC'")
        return connection.execute("select * from arrow").fetchall()


READERS = pytest.mark.parametrize("read", [by_pyarrow, by_polars, by_duckdb])


# ---- expected rows ------------------------------------------------------------------------------


def partition_rows(topics: list[Topic], stale: bool = False) -> Rows:
    return [
        (
            p.topic,
            p.topic_id,
            p.partition,
            p.leader,
            p.leader_epoch,
            list(p.replicas),
            list(p.isr),
            list(p.offline_replicas),
            p.error,
            p.unreachable,
            p.leaderless,
            stale,
        )
        for topic in topics
        for p in topic.partitions
    ]


def replica_rows(topics: list[Topic]) -> Rows:
    return [
        (
            p.topic,
            p.topic_id,
            p.partition,
            broker,
            place,
            broker == p.leader,
            broker in p.isr,
            broker in p.offline_replicas,
            place == 0,
        )
        for topic in topics
        for p in topic.partitions
        for place, broker in enumerate(p.replicas)
    ]


def topic_rows(cache: MetadataCache, topics: list[Topic]) -> Rows:
    return [
        (
            t.name,
            t.topic_id,
            t.internal,
            len(t.partitions),
            t.error,
            t.operations,
            t.version,
            "valid",
            cache.source(t.name),
            cache.reason(t.name),
            cache.age(t.name),
        )
        for t in topics
    ]


def broker_rows(cache: MetadataCache) -> Rows:
    return [
        (b.id, b.host, b.port, b.rack, b.id == cache.controller, cache.cluster_id)
        for b in cache.brokers
    ]


def change_rows(changes: Changes) -> Rows:
    return [tuple(list(v) if isinstance(v, tuple) else v for v in row) for row in changes]


def random_topic(rng: random.Random, i: int) -> T:
    """Returns a topic: dense or sparse ids, with or without leaders, equal or different lists."""
    odd = rng.random() < 0.5
    ids = sorted(rng.sample(range(100_000), 12)) if rng.random() < 0.3 else range(rng.randrange(12))
    partitions = []
    for number in ids:
        replicas = tuple(rng.sample(range(1, rng.choice([6, 300, 100_000])), 3))
        if not odd:
            partitions.append(P(number, replicas[0], 5, replicas))
            continue
        partitions.append(
            P(
                number,
                rng.choice([-1, *replicas]),
                rng.choice([-1, 3, 70_000]),
                replicas[: rng.randrange(1, 4)],
                replicas[: rng.randrange(4)],
                replicas[: rng.randrange(2)],
                rng.choice([0, 5, 9]),
            )
        )
    known = frames.topic_id(i) if rng.random() < 0.7 else frames.ZERO_ID
    return T(f"topic-{i}-ä", partitions, known, internal=rng.random() < 0.2)


# ---- tables of a cache --------------------------------------------------------------------------


@READERS
def test_an_empty_cache_gives_empty_tables(cache: MetadataCache, read: Callable[..., Rows]) -> None:
    for name in TABLES:
        assert read(cache.to_arrow(name)) == []  # type: ignore[arg-type]
    assert read(cache.changes().to_arrow()) == []


@READERS
def test_tables_of_random_clusters_equal_the_lookups(
    cache: MetadataCache, read: Callable[..., Rows]
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    brokers = [B(1, "one", 1, "rack-a"), B(2, "two", 2), B(3, "three", 3)]
    for _ in range(2):
        topics = [random_topic(rng, i) for i in range(30)]
        apply_response(cache, *topics, brokers=brokers, controller=2)
        valid = cache.topics()
        assert read(cache.to_arrow("brokers")) == broker_rows(cache)
        assert read(cache.to_arrow("topics")) == topic_rows(cache, valid)
        assert read(cache.to_arrow("partitions")) == partition_rows(valid)
        assert read(cache.to_arrow("replicas")) == replica_rows(valid)
        apply_response(cache, T("topic-1-ä", [], error=3), T("topic-2-ä", [], error=29))
        cache.apply(frames.response(12, topics[:3], brokers), 12, broker=2, reason="läuft ab")
        assert read(cache.to_arrow("topics")) == topic_rows(cache, cache.topics())


@READERS
def test_stale_topics_are_in_the_table_only_if_the_caller_allows_them(
    cache: MetadataCache, clock: Clock, read: Callable[..., Rows]
) -> None:
    apply_response(cache, T("orders", [P(0, 1, 7), P(1, 2, 7)]))
    apply_response(cache, T("orders", [P(0, -1, 8, error=5), P(1, 2, 7)]))
    assert read(cache.to_arrow("partitions"))[0][3] is None
    clock.advance(901)
    assert read(cache.to_arrow("partitions")) == []
    lenient = read(cache.to_arrow("partitions", allow_stale=True))
    assert lenient == partition_rows(cache.topics(allow_stale=True), stale=True)
    assert lenient[0][3] == 1
    (topic,) = read(cache.to_arrow("topics", allow_stale=True))
    assert topic[7:] == ("stale", 1, None, 901.0)


@pytest.mark.slow
@READERS
def test_many_rows_come_in_many_batches(read: Callable[..., Rows]) -> None:
    cache = MetadataCache()
    cache.apply(large_response(3_000, 50), 12, ALL)
    batches = pa.RecordBatchReader.from_stream(cache.to_arrow("partitions"))
    sizes = [len(batch) for batch in batches]
    assert (sum(sizes), len(sizes)) == (150_000, 3)
    assert read(cache.to_arrow("partitions")) == partition_rows(cache.topics())


def test_columns_have_the_documented_names_and_types(cache: MetadataCache) -> None:
    ids = pa.list_(pa.int32())
    assert pa.schema(cache.to_arrow("partitions")) == pa.schema(
        [
            pa.field("topic", pa.string(), nullable=False),
            pa.field("topic_id", pa.string()),
            pa.field("partition", pa.int32(), nullable=False),
            pa.field("leader", pa.int32()),
            pa.field("leader_epoch", pa.int32()),
            pa.field("replicas", ids, nullable=False),
            pa.field("isr", ids, nullable=False),
            pa.field("offline_replicas", ids, nullable=False),
            pa.field("error", pa.int16(), nullable=False),
            pa.field("unreachable", pa.bool_(), nullable=False),
            pa.field("leaderless", pa.bool_(), nullable=False),
            pa.field("stale", pa.bool_(), nullable=False),
        ]
    )
    doc = MetadataCache.to_arrow.__doc__ or ""
    for name in TABLES:
        table = cache.to_arrow(name)  # type: ignore[arg-type]
        documented = doc.split(f'"{name}" (')[1].split(")")[0].replace(" in\n", "\n").split(":")[0]
        columns = [word.split()[0] for word in documented.split(",")]
        assert columns == pa.schema(table).names == pa.table(table).schema.names


def test_a_table_is_of_one_version_and_can_be_read_many_times(cache: MetadataCache) -> None:
    apply_response(cache, T("orders", [P(0, 1, 7)]))
    table = cache.to_arrow("partitions")
    wanted = by_pyarrow(table)
    apply_response(cache, T("orders", [P(0, 2, 8)]), T("audit"))
    cache.purge()
    assert by_pyarrow(table) == by_polars(table) == by_duckdb(table) == wanted
    assert by_pyarrow(cache.to_arrow("partitions")) == []


@pytest.mark.slow
def test_a_table_outlives_its_cache() -> None:
    cache = MetadataCache()
    cache.apply(large_response(2_000, 50), 12, ALL)
    table, wanted = cache.to_arrow("partitions"), partition_rows(cache.topics())
    batches = pa.RecordBatchReader.from_stream(table)
    first = batches.read_next_batch()
    del cache, table
    gc.collect()
    rest = pa.Table.from_batches([first, *batches])
    assert [tuple(row.values()) for row in rest.to_pylist()] == wanted


def test_a_stream_may_be_dropped_half_read_or_unread(cache: MetadataCache) -> None:
    cache.apply(large_response(3_000, 50), 12, ALL)
    table = cache.to_arrow("partitions")
    batches = pa.RecordBatchReader.from_stream(table)
    batch = batches.read_next_batch()
    del batches
    table.__arrow_c_stream__()
    table.__arrow_c_stream__(table.__arrow_c_schema__())
    assert batch.num_rows == 65_536
    batch.validate(full=True)


def test_dropped_tables_leave_no_memory_behind(cache: MetadataCache) -> None:
    cache.apply(large_response(1_000, 10), 12, ALL)
    for _ in range(3):
        before = cache.stats()
        tables = [cache.to_arrow(name) for name in TABLES]  # type: ignore[arg-type]
        streams = [table.__arrow_c_stream__() for table in tables]
        pa.table(tables[2])
        del tables, streams
        after = cache.stats()
    assert before["bytes"] == after["bytes"]
    assert before["readers"] == after["readers"]


def test_an_unknown_table_is_refused(cache: MetadataCache) -> None:
    with pytest.raises(ValueError, match="no table 'leaders'; there are brokers, topics"):
        cache.to_arrow("leaders")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no table None"):
        cache.to_arrow(None)  # type: ignore[arg-type]


def test_only_to_arrow_makes_a_table_and_none_can_be_copied(cache: MetadataCache) -> None:
    table = cache.to_arrow("topics")
    with pytest.raises(TypeError, match="given by to_arrow"):
        type(table)()
    for make in (copy.copy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be pickled or copied"):
            make(table)


def test_names_that_are_not_utf8_have_a_replacement_character(cache: MetadataCache) -> None:
    apply_response(cache, T(b"\xffcaf\xc3\xa9", [P(0, 1, 7)]))
    ((name, *_),) = by_pyarrow(cache.to_arrow("partitions"))
    assert name == "\ufffdcafé"


def test_threads_read_tables_beside_a_writer(cache: MetadataCache) -> None:
    bodies = [large_response(300, 20, epoch) for epoch in range(30)]
    cache.apply(bodies[0], 12, ALL)
    faults: list[str] = []

    def look() -> None:
        for _ in range(20):
            table = pa.table(cache.to_arrow("partitions"))
            table.validate(full=True)
            if table.num_rows != 6_000 or len(set(table["leader_epoch"].to_pylist())) != 1:
                faults.append(f"{table.num_rows} rows")

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for body in bodies:
        cache.apply(body, 12, ALL)
    for thread in threads:
        thread.join()
    assert faults == []


@pytest.mark.slow
def test_batches_are_made_without_the_gil() -> None:
    cache = MetadataCache()
    cache.apply(large_response(20_000, 50), 12, ALL)
    table = cache.to_arrow("partitions")
    stop, ticks, gap = threading.Event(), 0, 0.0

    def tick() -> None:
        nonlocal ticks, gap
        last = time.perf_counter()
        while not stop.is_set():
            time.sleep(0.001)
            now = time.perf_counter()
            ticks, gap, last = ticks + 1, max(gap, now - last), now

    best = 1.0
    for _ in range(6):  # a busy machine makes gaps as well
        stop.clear()
        ticks, gap = 0, 0.0
        ticker = threading.Thread(target=tick)
        ticker.start()
        begin = time.perf_counter()
        for _ in range(3):
            pa.table(table)
        took = time.perf_counter() - begin
        stop.set()
        ticker.join()
        best = min(best, gap / took)
    assert ticks
    assert best < 0.5


def test_to_arrow_needs_no_pyarrow() -> None:
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import rdmeta\n"
        "t = rdmeta.MetadataCache().to_arrow('topics')\n"
        "assert 'arrow_array_stream' in repr(t.__arrow_c_stream__())\n"
        "assert 'arrow_schema' in repr(t.__arrow_c_schema__())\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=50)


def test_no_function_of_nanoarrow_is_exported() -> None:
    from rdmeta import _core

    library = ctypes.CDLL(_core.__file__)
    assert library.rdmeta_arrow_schema
    for name in ("ArrowSchemaInit", "rdmetaArrowSchemaInit"):
        assert not hasattr(library, name)


# ---- changes ------------------------------------------------------------------------------------


def some_changes(cache: MetadataCache) -> None:
    apply_response(
        cache, T("orders", [P(0, 1, 7), P(1, 2, 7)], frames.topic_id("orders")), T("audit")
    )
    apply_response(
        cache,
        T("orders", [P(0, 2, 8, isr=(2,)), P(1, -1, 8), P(2)], frames.topic_id("orders")),
        brokers=[B(1), B(4, "four", 4, "rack")],
    )
    apply_response(cache, T("audit", [], error=3), T("secret", [], error=29))
    cache.apply_leader_hint("orders", 0, 1, 9)
    apply_response(cache, T("orders", [P(0)], frames.topic_id("others")))
    cache.purge()


@READERS
def test_the_table_of_changes_equals_their_iteration(
    cache: MetadataCache, read: Callable[..., Rows]
) -> None:
    some_changes(cache)
    for since in range(cache.version + 1):
        changes = cache.changes(since)
        table = changes.to_arrow()
        rows = read(table)
        assert len(changes) == len(rows)
        assert rows == change_rows(changes)
        assert read(table) == rows
    kinds = {row.kind for row in cache.changes()}
    assert kinds >= {"topic_added", "isr_changed", "topic_recreated"}


def test_changes_have_the_columns_of_history_that_records_have(cache: MetadataCache) -> None:
    table = cache.changes().to_arrow()
    members = pa.schema([CHANGE_SCHEMA.field(name) for name in Change._fields])
    assert pa.schema(table) == members
    assert pa.table(table).schema == members
    assert tuple(members.names) == Change._fields


def test_changes_outlive_their_cache() -> None:
    cache = MetadataCache()
    some_changes(cache)
    changes = cache.changes()
    wanted = by_pyarrow(changes.to_arrow())
    del cache
    gc.collect()
    assert wanted == change_rows(changes)
    assert by_polars(changes.to_arrow()) == wanted
    assert changes.records is changes.records


def test_changes_that_were_made_by_hand_cannot_be_a_table() -> None:
    changes = Changes((), 7, False)
    with pytest.raises(TypeError, match="from a cache or from images"):
        changes.to_arrow()


def test_a_cache_that_lost_changes_gives_none_of_them(cache: MetadataCache) -> None:
    changes = cache.changes(5)
    assert changes.resync
    assert by_pyarrow(changes.to_arrow()) == []


def test_a_table_converts_and_shows_its_schema(cache: MetadataCache) -> None:
    apply_response(cache, T("orders", [P(0, 1), P(1, 1)]))
    table = cache.to_arrow("partitions")
    assert list(table.to_pandas()["partition"]) == [0, 1]
    assert table.to_polars()["partition"].to_list() == [0, 1]
    assert table.schema.names[:3] == ["topic", "topic_id", "partition"]
    changes = cache.changes(0).to_arrow()
    assert list(changes.to_pandas()) == list(changes.to_polars().columns) == changes.schema.names


def html(shown: Any) -> str:
    return str(shown._repr_html_())


def test_a_notebook_shows_the_first_rows_of_tables_images_and_changes(cache: MetadataCache) -> None:
    apply_response(cache, T("orders", [P(n, 1) for n in range(30)]), brokers=[B(1, rack="<b>&\n")])
    shown = html(cache.to_arrow("partitions"))
    assert shown.count("<tr>") == 21
    assert shown.endswith("<p>the first 20 of 30 rows</p>")
    rack = html(cache.to_arrow("brokers"))
    assert "<td>&lt;b&gt;&amp;\\n</td>" in rack
    assert "<p>rows: 1</p>" in rack
    image, changes = html(cache.image()), html(cache.changes(0))
    assert image.startswith("<p>&lt;rdmeta.Image ")
    assert "<td>orders</td>" in image
    assert changes.count("<td>leader_changed</td>") == 0 < changes.count("<td>topic_added</td>")
    by_hand = html(Changes(tuple(cache.changes(0)), 7, False))
    assert by_hand.count("<tr>") == changes.count("<tr>") == len(cache.changes(0)) + 1


def test_a_cache_is_a_mapping_of_names_to_topics(cache: MetadataCache) -> None:
    apply_response(cache, T("orders", [P(0, 1)]))
    for reading in (cache, cache.image()):
        assert reading["orders"] == reading.topic("orders")
        assert dict(reading) == dict(reading.items()) == {"orders": reading["orders"]}
        assert list(reading.keys()) == list(reading) == ["orders"]
        assert reading.values() == reading.topics()
        assert reading.get("orders") == reading["orders"]
        assert (reading.get("nope"), reading.get("nope", 7)) == (None, 7)
        with pytest.raises(KeyError, match="nope"):
            reading["nope"]
