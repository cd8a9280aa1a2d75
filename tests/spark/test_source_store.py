"""Reads and streams of a history in an object store open a footer once; each row comes once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pyarrow.fs
import pytest
from history_files import record
from kraft_days import LogOfDays
from object_stores import keys_of_requests
from recorded import cluster_day
from source_reads import read, sorted_rows
from stream_plans import Stream

from rdmeta import history
from rdmeta.history import HistoryError
from rdmeta.pipeline import inputs
from rdmeta.pipeline.store import Store
from rdmeta.spark.source.folder_feed import DataLossError
from rdmeta.spark.source.options import label


@pytest.fixture
def uri(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serves an object store; returns the URI of a new bucket, without credentials."""
    import boto3
    from moto.server import ThreadedMotoServer

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    name = f"bucket-{uuid4().hex}"
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
    client.create_bucket(Bucket=name)
    query = f"scheme=http&endpoint_override={quote(f'{host}:{port}', safe='')}&region=us-east-1"
    yield f"s3://{name}/history?{query}"
    server.stop()


def footers_opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list that gets the name of each object whose footer is read."""
    opened: list[str] = []
    real = inputs._opened

    def noted(place: Store, entry: Any) -> Any:
        opened.append(entry.path)
        return real(place, entry)

    monkeypatch.setattr(inputs, "_opened", noted)
    return opened


@pytest.mark.slow
def test_a_read_of_a_store_opens_only_footers_of_the_cluster_and_of_the_day(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for cluster in ("one", "two"):
        for day in (1, 2, 3):
            cluster_day(tmp_path, cluster, day)
    pyarrow.fs.copy_files(str(tmp_path), uri)
    opened = footers_opened(monkeypatch)
    local, stored = (
        read(path=where, cluster="two", since="2026-11-02T12:00") for where in (str(tmp_path), uri)
    )
    assert sorted_rows(local) == sorted_rows(stored) != []
    assert {name.partition("/")[0] for name in opened} == {"cluster=two"}
    assert {name.split("/")[1] for name in opened} == {"day=2026-11-02", "day=2026-11-03"}
    assert len(opened) == len(set(opened)) == 4


def test_each_request_of_a_read_and_of_a_stream_has_the_key_of_the_options(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(tmp_path, "one", changes=3)
    pyarrow.fs.copy_files(str(tmp_path), uri)
    asked = keys_of_requests(monkeypatch)
    given = {"storage.access_key": "of-the-test", "storage.secret_key": "secret-of-the-test"}
    given |= {"path": uri}
    assert read(**given).num_rows == history.read(tmp_path).num_rows
    assert "of-the-test" not in label(given)
    stream = Stream(given)
    assert sum(stream.drain()) == len(stream.rows) == history.read(tmp_path).num_rows
    assert set(asked) == {"of-the-test"}


@pytest.mark.slow
def test_a_stream_of_a_store_has_each_row_once(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = footers_opened(monkeypatch)
    record(tmp_path, "one", changes=3)
    pyarrow.fs.copy_files(str(tmp_path), uri)
    stream = Stream({"path": uri, "maxRowsPerTrigger": "4"})
    stream.drain()
    assert stream.batch() is None
    paths = record(tmp_path, "two")
    pyarrow.fs.copy_files(str(tmp_path / "cluster=two"), uri.replace("/history", "/history/more"))
    stream.drain()
    wanted = sorted(map(repr, history.read(tmp_path).to_pylist()))
    assert sorted(map(repr, stream.rows)) == wanted
    assert sorted({name.rpartition("/")[2] for name in opened}) == sorted(
        path.name for path in tmp_path.rglob("*.parquet")
    )
    assert len(opened) == len(set(opened))
    store = Store(uri)
    for entry in list(store.files("more")):
        if entry.name.endswith(paths[1].name):
            store.put(entry.name, b"PAR1")
    stream.restart({"path": uri, "startingOffsets": "latest"})
    with pytest.raises(HistoryError, match=f"s3://.*{paths[1].name}: not a whole Parquet file"):
        stream.reader.initialOffset()


def test_rows_that_are_gone_from_a_store_are_an_error(uri: str, tmp_path: Path) -> None:
    record(tmp_path, "one", changes=3)
    pyarrow.fs.copy_files(str(tmp_path), uri)
    stream = Stream({"path": uri, "maxRowsPerTrigger": "4"})
    assert stream.plan()
    tasks = stream.tasks()
    store = Store(uri)
    entries = list(store.files())
    for entry in entries[:1]:
        store.remove(entry.name)
    with pytest.raises(DataLossError, match="cluster one: its versions 0 to"):
        stream.read(tasks)


@pytest.mark.slow
def test_logs_in_a_store_have_the_records_and_states_of_those_in_a_folder(
    uri: str, tmp_path: Path
) -> None:
    days = LogOfDays(3)
    days.write(tmp_path / "n1", 1, end=40, snapshots=(20,))
    days.write(tmp_path / "n2", 2, first=20, snapshots=(20, days.end))
    pyarrow.fs.copy_files(str(tmp_path), uri)
    for given in ({"table": "records"}, {"table": "partitions", "at": "30"}, {"table": "brokers"}):
        local, stored = (read(path=where, **given) for where in (str(tmp_path), uri))
        names = [name for name in local.column_names if name != "file"]
        assert sorted_rows(local.select(names)) == sorted_rows(stored.select(names)) != []
    shown = read(path=uri, table="records")["file"].to_pylist()
    folder = uri.partition("?")[0]
    assert {name.partition("/n")[0] for name in shown} == {folder}
    assert "?" not in "".join(shown)
