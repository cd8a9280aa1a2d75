"""The pipeline reads and writes an object store by URIs, and no cut object is ever there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import pyarrow.fs
import pytest
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
    place.put("whole", b"y" * 20_000_000)
    assert [(entry.name, entry.size) for entry in place.files()] == [("whole", 20_000_000)]
    place.remove("whole")
    place.remove("whole")
    assert list(place.files()) == []
