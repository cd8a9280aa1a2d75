"""No table and no state has the value of a sensitive configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from history_files import rewrite
from recorded import cluster_day

from rdmeta import pipeline
from rdmeta.history import CHANGE_SCHEMA
from rdmeta.pipeline.redaction import redacted

SECRET = 'hunter2"= \n;'

# Kafka's configurations of brokers and clients that have the type PASSWORD.
SENSITIVE = (
    "sasl.jaas.config",
    "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
    "ssl.truststore.password",
    "listener.name.external.ssl.keystore.key",
    "delegation.token.master.key",
    "delegation.token.secret.key",
    "password.encoder.secret",
    "password.encoder.old.secret",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "vendor.API.Token",
)
PLAIN = (
    "min.insync.replicas",
    "cleanup.policy",
    "log.retention.ms",
    "ssl.keystore.location",
    "delegation.token.max.lifetime.ms",
    "sasl.enabled.mechanisms",
)


def shown(kind: str, *details: str | None) -> list[str | None]:
    rows = [{"kind": kind, "detail": each} for each in details]
    batch = pa.RecordBatch.from_pylist(rows, schema=CHANGE_SCHEMA)
    found: list[str | None] = redacted(batch).column("detail").to_pylist()
    return found


@pytest.mark.parametrize("key", SENSITIVE)
def test_a_sensitive_value_is_hidden_and_its_key_stays(key: str) -> None:
    details = (f"{key}={SECRET}", f"{key}=", key)
    assert shown("config_changed", *details) == [f"{key}=***", f"{key}=***", key]


@pytest.mark.parametrize("key", PLAIN)
def test_any_other_value_stays(key: str) -> None:
    details = (f"{key}=2", f"{key}=a password=x", key, None)
    assert shown("config_changed", *details) == list(details)


def test_other_kinds_stay() -> None:
    assert shown("broker_changed", "host.password=x") == ["host.password=x"]
    without = pa.RecordBatch.from_pylist([{"kind": "config_changed"}])
    assert redacted(without).equals(without)


def test_no_file_that_the_pipeline_makes_has_the_value(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    cluster_day(source, "one", 1)
    path = max(source.rglob("*.parquet"), key=lambda each: pq.read_metadata(each).num_rows)
    table = pq.read_table(path)
    rows: list[dict[str, Any]] = table.to_pylist()
    blank = dict.fromkeys(table.schema.names)
    last = rows[-1]
    common = {name: last[name] for name in ("version", "cluster_id", "session", "observed_at")}
    config = {**blank, **common, "source": "poll", "kind": "config_changed"}
    rows += [
        {**config, "broker": 1, "detail": "sasl.jaas.config=x password=hunter2;"},
        {**config, "broker": 1, "detail": "log.retention.ms=7"},
        {**config, "topic": "topic-0", "detail": "ssl.truststore.password=hunter2"},
    ]
    rewrite(path, pa.Table.from_pylist(rows, schema=table.schema))
    made = pipeline.run(pipeline.plan([source], out, in_place=True), workers=1)
    assert not made.plan.quarantined
    folder = out / "silver/v1/config_interval"
    (part,) = folder.rglob("*.parquet")
    values = {
        (each["resource_type"], each["resource"], each["key"]): each["value"]
        for each in pq.read_table(part).to_pylist()
    }
    assert values == {
        ("broker", "1", "sasl.jaas.config"): "***",
        ("broker", "1", "log.retention.ms"): "7",
        ("topic", "topic-0", "ssl.truststore.password"): "***",
    }
    tables = [pq.read_table(each).to_pylist() for each in out.rglob("*.parquet")]
    assert len(tables) > 5
    assert "hunter2" not in str(tables)


def test_texts_that_are_dictionaries_are_redacted() -> None:
    rows = {"kind": ["config_changed", "leader_changed"], "detail": ["ssl.key.password=x", None]}
    coded = pa.RecordBatch.from_pydict(rows)
    for place, name in enumerate(coded.schema.names):
        coded = coded.set_column(place, name, coded.column(name).dictionary_encode())
    assert redacted(coded).column("detail").to_pylist() == ["ssl.key.password=***", None]
