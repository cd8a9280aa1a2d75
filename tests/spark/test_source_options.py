"""The options of the data source: each error names the option, its value and what is accepted."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

from rdmeta.errors import ConfigError
from rdmeta.spark import read as spark_read
from rdmeta.spark.source import DefaultSource
from rdmeta.spark.source.options import Options, label
from rdmeta.spark.source.schemas import arrow_schema, columns_of, spark_schema
from rdmeta.spark.spark_session import hidden_pattern

PATH = {"path": "/history"}
LIVE = {"bootstrap.servers": "127.0.0.1:9", "table": "partitions"}
SECRET = "hunter2-is-secret"

# What is given, and what the error has: the option, the value, and what is accepted.
HOSTILE: list[tuple[dict[str, str], list[str]]] = [
    ({}, ["no source is given", "expected one of path, bootstrap.servers, image"]),
    ({**PATH, "image": "x"}, ["options path and image are given", "expected one of"]),
    ({"path": ""}, ["option path = ''", "expected a path or a URI"]),
    ({"path": " "}, ["option path = ' '", "expected a path"]),
    ({"path": "a\0b"}, ["option path = 'a\\x00b'", "expected a path"]),
    ({"path": f"s3://key:{SECRET}@bucket/x"}, ["option path: its URI has credentials"]),
    ({"path": f"abfs://c@a.x/y?client_secret={SECRET}"}, ["option path: its URI has credentials"]),
    ({**PATH, "storage.secretkey": SECRET}, ["did you mean storage.secret_key?"]),
    ({**LIVE, "storage.secret_key": SECRET}, ["storage.secret_key: expected a path"]),
    ({**PATH, "table": ""}, ["option table = ''", "path has changes, partition_interval"]),
    ({**PATH, "table": "Changes"}, ["option table = 'Changes'", "path has changes"]),
    ({**PATH, "table": "x" * 999}, ["option table = 'xxx", "...", "path has changes"]),
    (
        {**PATH, "table": "risk_hour"},
        ["option table = 'risk_hour'", "spark.read.parquet('/history/gold/v1/risk_hour')"],
    ),
    (
        {**LIVE, "table": "incident"},
        ["option table = 'incident'", "spark.read.parquet('OUT/gold/v1/incident')"],
    ),
    ({**LIVE, "table": "records"}, ["option table = 'records'", "such table; path has"]),
    ({**LIVE, "table": "change"}, ["option table = 'change'", "path has", "brokers, topics"]),
    ({"image": "i", "table": "configs"}, ["option table = 'configs'", "an image has no config"]),
    ({"image": "i"}, ["option table is missing", "image has brokers, topics"]),
    ({"bootstrap.servers": "h:1"}, ["option table is missing", "has brokers, topics"]),
    ({**PATH, "at": "17"}, ["option at = '17'", "changes is of no moment; only brokers, topics"]),
    ({**PATH, "table": "records", "at": "17"}, ["option at = '17'", "records is of no moment"]),
    ({**PATH, "table": "topics", "at": "-1"}, ["option at = '-1'", "expected an offset, or a"]),
    ({**PATH, "table": "topics", "at": "9" * 20}, ["option at = '999", "expected an offset"]),
    ({**PATH, "table": "topics", "at": "soon"}, ["option at = 'soon'", "or a day or a time"]),
    (
        {**PATH, "table": "topics", "since": "2026-11-22"},
        ["option since = '2026-11-22'", "topics is of one moment; give that as at"],
    ),
    ({**LIVE, "at": "17"}, ["option at = '17'", "only a path takes this option"]),
    ({**PATH, "topic": ""}, ["option topic = ''", "expected NAME or NAME,NAME"]),
    ({**PATH, "topic": "a,,b"}, ["option topic = 'a,,b'", "expected NAME"]),
    ({**PATH, "cluster": ","}, ["option cluster = ','", "expected NAME"]),
    ({**PATH, "since": "yesterday"}, ["option since = 'yesterday'", "2026-11-22T03:05:00Z"]),
    ({**PATH, "since": "2026-13-01"}, ["option since = '2026-13-01'", "expected a day or a time"]),
    ({**PATH, "until": "1790000000"}, ["option until = '1790000000'", "expected a day or a time"]),
    ({**PATH, "until": "2026-11-22Z"}, ["option until = '2026-11-22Z'", "expected a day"]),
    ({**PATH, "until": "0001-01-01T00:00+23:59"}, ["option until = '0001", "expected a day"]),
    (
        {**PATH, "since": "2026-11-22", "until": "2026-11-22T00:00:00Z"},
        ["option until = '2026-11-22T00:00:00Z'", "expected a time after since = '2026-11-22'"],
    ),
    ({**PATH, "pushdown": "yes"}, ["option pushdown = 'yes'", "expected true or false"]),
    ({**PATH, "maxFilesPerTrigger": "0"}, ["option maxfilespertrigger = '0'", "from 1 to"]),
    ({**PATH, "maxRowsPerTrigger": "1e6"}, ["option maxrowspertrigger = '1e6'", "from 1 to"]),
    ({**PATH, "maxRowsPerTrigger": "9" * 19}, ["option maxrowspertrigger = '999", "from 1 to"]),
    ({**PATH, "failOnDataLoss": ""}, ["option failondataloss = ''", "expected true or false"]),
    ({**PATH, "startingOffsets": "0"}, ["option startingoffsets = '0'", "earliest or latest"]),
    ({**PATH, "clusters": "a"}, ["unknown option 'clusters', did you mean cluster?", "since"]),
    ({**PATH, "sasl.pasword": SECRET}, ["unknown option 'sasl.pasword'", "expected path, image"]),
    ({**PATH, "sasl.password": SECRET}, ["option sasl.password: it belongs to a client"]),
    ({**PATH, "security.protocol": "ssl"}, ["option security.protocol: it belongs to a client"]),
    ({**LIVE, "bootstrap.servers": ""}, ["bootstrap.servers", "expected host:port"]),
    ({**LIVE, "bootstrap.servers": "h:99999"}, ["bootstrap.servers", "99999"]),
    ({**LIVE, "nope": SECRET}, ["unknown option 'nope'"]),
    ({**LIVE, "security.protocol": "tls"}, ["security.protocol = 'tls'", "expected plaintext"]),
    ({**LIVE, "sasl.password": SECRET}, ["security.protocol is missing: sasl.password needs"]),
    ({**LIVE, "cluster": "c"}, ["option cluster = 'c'", "only a path takes this option"]),
    ({**LIVE, "since": "2026-11-22"}, ["option since = '2026-11-22'", "only a path"]),
    ({**LIVE, "table": "brokers", "topic": "a"}, ["option topic = 'a'", "brokers has no topics"]),
    (
        {**PATH, "table": "observation", "topic": "a"},
        ["option topic = 'a'", "observation has no topics"],
    ),
]


@pytest.mark.parametrize(("given", "wanted"), HOSTILE, ids=[str(n) for n in range(len(HOSTILE))])
def test_an_error_names_the_option_its_value_and_what_is_accepted(
    given: dict[str, str], wanted: list[str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        Options.parse(given)
    text = str(caught.value)
    assert [each for each in wanted if each not in text] == [], text
    assert SECRET not in text


def test_names_have_any_case_and_values_are_parsed() -> None:
    given = {
        "PATH": "/history",
        "Cluster": "a, b",
        "topic": "orders",
        "Since": "2026-11-22",
        "UNTIL": "2026-11-22T03:05:00.5+01:00",
        "pushDown": "TRUE",
        "maxFilesPerTrigger": "7",
        "maxRowsPerTrigger": "8",
        "failOnDataLoss": "false",
        "startingOffsets": "Latest",
    }
    assert Options.parse(given) == Options(
        "path",
        "/history",
        "changes",
        {},
        frozenset(["a", "b"]),
        frozenset(["orders"]),
        1_795_305_600_000_000,
        1_795_305_600_000_000 + (2 * 3600 + 5 * 60) * 1_000_000 + 500_000,
        True,
        7,
        8,
        False,
        "latest",
    )


def test_a_plan_shows_the_table_the_source_and_choices_alone() -> None:
    client = {"security.protocol": "sasl_ssl", "sasl.password": SECRET, "topic": "a\n" + "b" * 99}
    assert label({**LIVE, **client}) == (
        f"rdmeta: partitions of 127.0.0.1:9, topic a\\n{'b' * 58}..."
    )
    store = {"path": "abfs://x/y?enable_tls=false", "CLUSTER": "a", "until": "2026-11-22"}
    assert label(store) == "rdmeta: changes of abfs://x/y, cluster a, until 2026-11-22"
    for given, text in (
        ({}, "no source is given"),
        ({"path": f"s3://key:{SECRET}@bucket/x"}, "credentials"),
        ({**PATH, "table": "nope"}, "option table = 'nope'"),
    ):
        with pytest.raises(ConfigError, match=text) as caught:
            label(given)
        assert SECRET not in str(caught.value)


def test_the_options_of_the_client_are_checked_by_their_own_names() -> None:
    given = {**LIVE, "security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN"}
    options = Options.parse({**given, "sasl.username": "me", "sasl.password": SECRET})
    assert options.client["sasl.password"] == SECRET
    assert SECRET not in repr(options)


def test_a_file_has_options_of_the_client(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"client.id=file\nsecurity.protocol=plaintext\nsasl.password={SECRET}\n")
    options = Options.parse({**LIVE, "client.properties": str(file), "client.id": "mine"})
    assert options.client["client.id"] == "mine"
    assert options.client["sasl.password"] == SECRET
    with pytest.raises(ConfigError, match="option client.properties = .*expected bootstrap.ser"):
        Options.parse({**PATH, "client.properties": str(file)})


@pytest.mark.parametrize("key", ["sasl.password", "ssl.key.pem", "sasl.jaas.config"])
def test_the_pattern_hides_credentials_in_the_text_of_a_query(key: str) -> None:
    texts = [
        f'options {{\n  key: "{key}"\n  value: "a\\"{SECRET}\\n"\n}}\n',
        f"OPTIONS (`{key}` \\'{SECRET}\\', table \\'partitions\\')",
        f"OPTIONS ({key} = '{SECRET}')",
    ]
    values = [
        f"'{SECRET}'",
        f'"{SECRET}"',
        f"r'{SECRET}\\'",
        f"'it''s {SECRET}'",
        f"'a' '{SECRET}'",
    ]
    values += [
        f"'a\\'{SECRET}'",
        f"'\\\\{SECRET}'",
        f"'{SECRET}",
        f'R"\\{SECRET}"',
        f"\n'{SECRET}'",
    ]
    ways = ["'{}'", '"{}"', "`{}`", "{}"]
    quoted = [way.format(key) for way in ways] + [f"`{key.replace('.', '`.`')}`"]
    for written in (f"{name}{gap}{value}" for name in quoted for gap in " =" for value in values):
        shown = re.sub(r"([\\'\"])", r"\\\1", written).replace("\n", "\\n")
        texts += [f"OPTIONS ({written}", f'query: "OPTIONS ({shown}']
    gaps = [" == ", " /* it's */ ", " = -- it's\n", " = '' || ", " = concat('', ", " => ", "$$"]
    texts += [f"OPTIONS ('{key}'{gap}'{SECRET}')" for gap in gaps]
    for dot in ("\\.", "\\u002e", "' '.", " . ", "` . `"):
        texts.append(f"OPTIONS ('{key.replace('.', dot)}' '{SECRET}')")
    for written in ("\\u{:04x}", "\\U{:08x}", "\\{:o}"):
        letter = written.format(ord(key[-1]))
        texts += [f"OPTIONS ('{key[:-1]}{letter}' {quote}{SECRET}{quote})" for quote in "'\""]
    for text in texts:
        assert SECRET not in re.sub(hidden_pattern(), "***", text), text
    assert "777" not in re.sub(hidden_pattern(), "***", f"OPTIONS ('{key}' 777)")
    both = f"OPTIONS ('table' 'partitions', '{key}' '{SECRET}')"
    assert re.sub(hidden_pattern(), "***", both) == "OPTIONS ('table' 'partitions', '***"
    assert re.sub(hidden_pattern(), "***", 'key: "table" value: "x"') == 'key: "table" value: "x"'


def test_a_read_with_a_credential_lets_the_pages_of_a_server_hide_it() -> None:
    class Remote(SimpleNamespace):
        __module__ = "pyspark.sql.connect.session"

    session: Any = Remote(conf=MagicMock(), dataSource=MagicMock(), read=MagicMock())
    session.conf.get.return_value = None
    spark_read(session, {**PATH, "topic": "orders"})
    session.conf.set.assert_not_called()
    spark_read(session, {**PATH, "storage.secret_key": SECRET})
    pattern = hidden_pattern()
    session.conf.set.assert_called_once_with("spark.sql.redaction.string.regex", pattern)


def test_the_source_forgets_its_options_when_it_gives_a_reader() -> None:
    given = {**LIVE, "security.protocol": "sasl_ssl", "sasl.mechanism": "PLAIN"}
    source = DefaultSource({**given, "sasl.username": "me", "sasl.password": SECRET})
    assert SECRET.encode() in pickle.dumps(source)
    reader = source.reader(source.schema())
    assert SECRET.encode() not in pickle.dumps((source, reader))


def test_a_schema_of_the_user_may_choose_and_order_columns() -> None:
    schema = spark_schema("partitions")
    chosen = type(schema)([schema["partition"], schema["topic"]])
    assert columns_of("partitions", chosen).names == ["partition", "topic"]
    assert columns_of("partitions", schema) == arrow_schema("partitions")


@pytest.mark.parametrize(("name", "other"), [("nope", "topic"), ("topic", "partition")])
def test_a_schema_with_another_column_is_refused(name: str, other: str) -> None:
    schema = spark_schema("partitions")
    wrong = type(schema)().add(name, schema[other].dataType)
    with pytest.raises(ConfigError, match=f"partitions has no column {name}.*expected some of"):
        columns_of("partitions", wrong)
