"""The pipeline reads and writes an object store by URIs, and no cut object is ever there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import pyarrow.fs
import pytest
from kraft_days import LogOfDays
from readers import lasting
from recorded import cluster_day, contents

from rdmeta import pipeline
from rdmeta.pipeline.store import Store


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str) -> str:
    """Returns the name of a new bucket."""
    import boto3

    name = f"bucket-{uuid4().hex}"
    keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s"}
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys).create_bucket(
        Bucket=name
    )
    return name


class Uri:
    """Makes URIs of a bucket."""

    def __init__(self, bucket: str, endpoint: str) -> None:
        host = quote(endpoint.removeprefix("http://"), safe="")
        self._bucket = bucket
        self._query = f"scheme=http&endpoint_override={host}&region=us-east-1"

    def __call__(self, folder: str) -> str:
        return f"s3://k:s@{self._bucket}/{folder}?{self._query}"


@pytest.fixture
def uri(bucket: str, endpoint: str) -> Uri:
    return Uri(bucket, endpoint)


@pytest.mark.slow
def test_a_history_in_a_store_makes_the_same_tables_there(uri: Uri, tmp_path: Path) -> None:
    cluster_day(tmp_path / "history", "one", 1)
    cluster_day(tmp_path / "history", "two", 1)
    pyarrow.fs.copy_files(str(tmp_path / "history"), uri("history"))
    made = pipeline.run(pipeline.plan([uri("history")], uri("out"), gold=True), workers=1)
    assert len(made.copied) == 4
    assert pipeline.check(uri("out")) == []
    pipeline.run(pipeline.plan([tmp_path / "history"], tmp_path / "out", gold=True), workers=1)
    local = contents(tmp_path / "out")
    store = Store(uri("out"))
    for name in [name for name in local if name.startswith(("silver", "bronze"))]:
        assert store.read(name) == local[name]
    again = pipeline.run(pipeline.plan([uri("history")], uri("out"), gold=True), workers=1)
    assert (again.copied, again.made, again.unchanged) == ([], [], len(made.made))


def test_a_file_that_a_run_could_not_finish_is_not_in_the_store(
    uri: Uri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster_day(tmp_path, "one", 1)
    place = Store(uri("out"))

    def fail() -> None:
        with place.draft("cut.parquet") as draft:
            draft.path.write_bytes(b"x" * 1000)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert place.read("cut.parquet") is None
    place.put("whole", b"y" * 9_000_000)
    assert [(entry.name, entry.size) for entry in place.files()] == [("whole", 9_000_000)]
    place.remove("whole")
    place.remove("whole")
    assert list(place.files()) == []


@pytest.mark.slow
def test_logs_in_a_store_make_the_same_tables_in_a_folder_and_there(
    uri: Uri, tmp_path: Path
) -> None:
    days, here = LogOfDays(3), tmp_path / "in"
    days.write(here / "n1", 1, cuts=(20,), snapshots=(30,))
    days.write(here / "n2", 2, first=30, cuts=(40,), snapshots=(30, days.end))
    pipeline.run(pipeline.plan([here], tmp_path / "whole", gold=True), workers=1)
    pyarrow.fs.copy_files(str(here), uri("logs"))
    wanted = lasting(tmp_path / "whole")
    pipeline.run(pipeline.plan([uri("logs")], tmp_path / "out", gold=True), workers=2)
    assert lasting(tmp_path / "out") == wanted
    raw = (tmp_path / "out").rglob("*.log")
    assert {oct(path.stat().st_mode & 0o777) for path in raw} == {"0o600"}
    for name in ("out", "in-place"):
        in_place = name == "in-place"
        plan = pipeline.plan([uri("logs")], uri(name), gold=True, in_place=in_place)
        pipeline.run(plan, workers=1)
        assert pipeline.check(uri(name)) == []
        store = Store(uri(name))
        for each in [each for each in wanted if each.startswith(("silver", "gold", "bronze"))]:
            assert in_place and "/log/" in each or store.read(each) == wanted[each]
        before = {each.name: each for each in store.files()}
        again = pipeline.run(
            pipeline.plan([uri("logs")], uri(name), gold=True, in_place=in_place), workers=1
        )
        assert (again.made, again.copied) == ([], [])
        assert {each.name: each for each in store.files()} == before


def test_a_log_without_its_notes_in_a_store_is_set_aside_and_named(
    uri: Uri, tmp_path: Path
) -> None:
    days = LogOfDays(1)
    days.write(tmp_path / "in/n1", 1, snapshots=(days.end,))
    (tmp_path / "in/n1/meta.properties").unlink()
    pyarrow.fs.copy_files(str(tmp_path / "in"), uri("logs"))
    with pytest.raises(pipeline.PipelineError, match="the log's cluster and node are not known"):
        pipeline.plan([uri("logs")], tmp_path / "out")
