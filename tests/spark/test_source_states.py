"""Tables of a cluster and of an image, and batches of exact schema, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from source_reads import read, reader_of, tasks_of

from rdmeta.cache import MetadataCache
from rdmeta.client.blocking import Client
from rdmeta.embedded import EmbeddedCluster
from rdmeta.errors import ConfigError, TopicAuthorizationError, TransportError
from rdmeta.net.describe_configs import TopicConfig
from rdmeta.net.fetch import fetch
from rdmeta.spark.source import states
from rdmeta.spark.source.files import BATCH_ROWS, exact


def test_configs_have_a_row_per_key_and_one_for_an_error(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in ("orders", "clicks", "denied"):
        cluster.create_topic(topic)
    asked: list[list[str]] = []

    def told(client: Client, topics: list[str], **named: Any) -> dict[str, TopicConfig]:
        asked.append(topics)
        values: dict[str, str | None] = {"min.insync.replicas": "2", "a.secret": None}
        found = {topic: TopicConfig(None, values) for topic in topics if topic != "denied"}
        return found | {"denied": TopicConfig(TopicAuthorizationError("not allowed"), {})}

    monkeypatch.setattr(Client, "describe_configs", told)
    rows = read(servers=cluster.bootstrap, table="configs").to_pylist()
    assert asked == [["clicks", "denied", "orders"]]
    assert len({row.pop("cluster_id") for row in rows}) == 1
    found = [tuple(row.values()) for row in rows]
    assert found == [
        ("clicks", "a.secret", None, None),
        ("clicks", "min.insync.replicas", "2", None),
        ("denied", None, None, "not allowed"),
        ("orders", "a.secret", None, None),
        ("orders", "min.insync.replicas", "2", None),
    ]


def test_a_cluster_without_topics_has_no_rows(cluster: EmbeddedCluster) -> None:
    for table in ("topics", "partitions", "replicas", "configs"):
        assert read(servers=cluster.bootstrap, table=table).num_rows == 0
    assert read(servers=cluster.bootstrap, table="brokers").num_rows == 3


def test_a_large_state_is_cut_into_tasks(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.create_topic("orders", partitions=100)
    monkeypatch.setattr(states, "_SLICE_BYTES", 1_000)
    reader = reader_of(servers=cluster.bootstrap, table="partitions")
    assert len(tasks_of(reader)) > 3
    found = read(servers=cluster.bootstrap, table="partitions")
    assert found["partition"].to_pylist() == list(range(100))


def test_topics_choose_rows_of_an_image(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    for topic in ("orders", "clicks", "views"):
        cluster.create_topic(topic, partitions=2)
    cache = MetadataCache()
    fetch(cache, cluster.bootstrap)
    cache.image().save(tmp_path / "image")
    found = read(image=str(tmp_path / "image"), table="replicas", topic="orders,views,nope")
    assert sorted(set(found["topic"].to_pylist())) == ["orders", "views"]
    assert set(found["cluster_id"].to_pylist()) == {cache.cluster_id}


def test_a_file_that_is_no_image_is_named(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"no image")
    with pytest.raises(ConfigError, match=f"option image = '{tmp_path}/image': "):
        read(image=str(tmp_path / "image"), table="topics")


def test_a_cluster_that_does_not_answer_is_an_error_without_credentials() -> None:
    with pytest.raises(TransportError) as caught:
        reader_of(
            servers="127.0.0.1:1",
            table="topics",
            **{
                "security.protocol": "sasl_plaintext",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "me",
                "sasl.password": "hunter2",
            },
        ).partitions()
    assert "127.0.0.1:1" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_batches_have_16384_rows_and_exactly_the_columns() -> None:
    columns = pa.schema([("b", pa.string()), ("a", pa.int32())])
    wide = pa.table(
        {"a": pa.array(range(30_000), pa.int64()), "b": ["x"] * 30_000, "c": [1.5] * 30_000}
    )
    encoded = wide.set_column(1, "b", wide["b"].dictionary_encode())
    rows = [wide.slice(0, 7), encoded.slice(7, 0), encoded.slice(7), *wide.to_batches(1_000)]
    batches = list(exact(rows, columns))
    assert [batch.num_rows for batch in batches] == [BATCH_ROWS] * 3 + [60_000 - 3 * BATCH_ROWS]
    assert all(batch.schema.equals(columns) for batch in batches)
    found = pa.Table.from_batches(batches)
    assert found["a"].to_pylist() == [*range(30_000), *range(30_000)]


def test_a_value_that_its_column_cannot_hold_is_an_error() -> None:
    columns = pa.schema([("a", pa.int32())])
    with pytest.raises(pa.ArrowInvalid, match="not in range"):
        list(exact([pa.table({"a": pa.array([1 << 40])})], columns))
