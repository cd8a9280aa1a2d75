"""Credentials of object stores count where they are given, and no text shows them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import boto3
import commands
import pyarrow.fs
import pytest
from object_stores import keys_of_requests
from recorded import cluster_day

from rdmeta import pipeline
from rdmeta.errors import ConfigError
from rdmeta.pipeline.delta import _storage_options
from rdmeta.pipeline.errors import PipelineError
from rdmeta.pipeline.storage import OPTIONS, Storage, current, each_using, hidden, split, using
from rdmeta.pipeline.store import Store

KEYS = {"access_key": "key-of-the-test", "secret_key": "secret-of-the-test"}
AZURE = "abfss://c@a.dfs.core.windows.net/x"
ALSO = {"aws_access_key_id": "k", "aws_secret_access_key": "s"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list that gets the access key of each request."""
    return keys_of_requests(monkeypatch)


@pytest.fixture
def folder(asked: list[str]) -> Iterator[str]:
    """Yields the URI of a folder in a new bucket, without a query."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    name = f"bucket-{uuid4().hex}"
    client = boto3.client(
        "s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1", **ALSO
    )
    client.create_bucket(Bucket=name)
    asked.clear()
    KEYS["endpoint"] = f"http://{host}:{port}"
    yield f"s3a://{name}/out"
    server.stop()


@pytest.mark.proof
def test_each_request_of_a_run_has_the_key_that_was_given(
    folder: str, asked: list[str], tmp_path: Path
) -> None:
    cluster_day(tmp_path / "history", "one", 1)
    plan = pipeline.plan([tmp_path / "history"], folder, gold=True, storage=KEYS)
    for shown in (repr(plan), repr(plan.tasks), str(plan.options), plan._repr_html_()):
        assert "of-the-test" not in shown
    pipeline.run(plan, workers=2)
    assert pipeline.check(folder, storage=KEYS) == []
    assert set(asked) == {KEYS["access_key"]}
    with using(Storage.parse(KEYS)):
        store = Store(folder)
    for each in store.files():
        assert b"of-the-test" not in (store.read(each.name) or b"")


@pytest.mark.slow
def test_the_command_takes_credentials_of_a_file_and_of_the_environment(
    folder: str, asked: list[str], tmp_path: Path
) -> None:
    cluster_day(tmp_path / "history", "one", 1)
    file = tmp_path / "storage.properties"
    file.write_text(
        f"storage.secret_key={KEYS['secret_key']}\nstorage.endpoint={KEYS['endpoint']}\n"
    )
    words = ("pipeline", "silver", str(tmp_path / "history"), folder, "-F", str(file), "--json")
    env = {"RDMETA_STORAGE_ACCESS_KEY": KEYS["access_key"]}
    done = commands.run_process(*words, env=env)
    assert done.code == 0, done.err
    assert set(asked) == {KEYS["access_key"]}
    assert "of-the-test" not in done.out + done.err
    wrong = commands.run_process(*words, "-X", "storage.secret=of-the-test")
    assert wrong.code == 2
    assert "unknown option storage.secret: did you mean storage.secret_key?" in wrong.err
    other = commands.run_process(*words, "-X", "sasl.password=of-the-test")
    assert "sasl.password is no option of rdmeta pipeline" in other.err
    assert "of-the-test" not in wrong.err + other.err


def test_a_uri_is_known_without_its_credentials(
    folder: str, asked: list[str], tmp_path: Path
) -> None:
    cluster_day(tmp_path / "history", "one", 1)
    host = quote(KEYS["endpoint"].removeprefix("http://"), safe="")
    query = f"scheme=http&endpoint_override={host}&region=us-east-1"
    uri = f"{folder}?{query}".replace("s3a://", "s3://of-the-test:secret-of-the-test@")
    store = Store(uri)
    assert store.where == f"{folder}?{query}".replace("s3a", "s3")
    assert store.shown("a/b").endswith("/out/a/b")
    assert "of-the-test" not in repr(Storage().without(uri))
    assert b"of-the-test" not in pickle.dumps(store)
    plan = pipeline.plan([tmp_path / "history"], uri, in_place=True)
    assert "of-the-test" not in repr(plan)
    pipeline.run(plan, workers=1)
    assert set(asked) == {"of-the-test"}
    assert store.below("x").where == store.where.replace("/out?", "/out/x?")
    with pytest.raises(PipelineError, match="/other.*: it has no manifest.json") as caught:
        pipeline.check(uri.replace("/out?", "/other?"))
    assert "of-the-test" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "clean", "found"),
    [
        ("/Volumes/main/ops/tables", "/Volumes/main/ops/tables", {}),
        ("/dbfs/a?b@c:d", "/dbfs/a?b@c:d", {}),
        ("s3://b/x?region=r", "s3://b/x?region=r", {}),
        ("s3n://k:a%2Fb@b/x", "s3n://b/x", {"access_key": "k", "secret_key": "a/b"}),
        ("gs://b/x", "gs://b/x", {}),
        (AZURE, AZURE, {}),
        (AZURE.replace("c@", "c:k@"), AZURE, {"account_key": "k"}),
        (f"{AZURE}?client_secret=z&a=b", f"{AZURE}?a=b", {"client_secret": "z"}),
        ("abfs://c@a.x/y?sv=1&sig=z", "abfs://c@a.x/y", {"sas_token": "sv=1&sig=z"}),
        ("hdfs://me@host:8020/x", "hdfs://me@host:8020/x", {}),
    ],
)  # fmt: skip
def test_a_uri_is_taken_apart(uri: str, clean: str, found: dict[str, str]) -> None:
    assert split(uri) == (clean, found)


def test_a_password_that_no_store_takes_is_refused_without_it() -> None:
    with pytest.raises(PipelineError, match="gs://b/x: its URI has a password") as caught:
        Store("gs://me:of-the-test@b/x")
    assert "of-the-test" not in str(caught.value)


def test_options_count_for_stores_of_their_kind() -> None:
    every = {name: f"v-{name}" for name in OPTIONS}
    storage = Storage.parse(every)
    for where, kind in (("s3a://b", "s3"), ("gcs://b", "gs"), ("abfss://c@a.x", "abfs")):
        assert set(storage.of(where)) == {n for n, each in OPTIONS.items() if each.kind == kind}
    assert storage.of("/data") == {}
    assert "v-" not in repr(storage)
    assert pickle.loads(pickle.dumps(storage)) == storage
    with pytest.raises(ConfigError, match="storage.region: expected a text"):
        Storage.parse({"region": ""})


def test_an_iterator_has_its_credentials_and_its_caller_has_none() -> None:
    storage = Storage.parse({"region": "r"})
    rows = (current() for _ in range(2))
    for row in each_using(storage, rows):
        assert row is storage
        assert current() != storage


@pytest.mark.parametrize(
    ("uri", "options", "kind", "path"),
    [
        ("gs://b/x", {"access_token": "t"}, pyarrow.fs.GcsFileSystem, "b/x"),
        (AZURE, {"account_key": "a2V5"}, pyarrow.fs.AzureFileSystem, "c/x"),
    ],
)  # fmt: skip
def test_stores_of_other_kinds_take_theirs(
    uri: str, options: dict[str, str], kind: type, path: str
) -> None:
    with using(Storage.parse(options)):
        store = Store(uri)
    assert isinstance(store._store, kind)
    assert store.path() == path


def test_delta_gets_names_of_its_own_or_says_that_it_takes_none() -> None:
    with using(Storage.parse({**KEYS, "endpoint": "http://h:1", "access_token": "t"})):
        found = _storage_options(Store("s3a://b/x"))
        assert found["aws_secret_access_key"] == KEYS["secret_key"]
        assert (found["aws_endpoint_url"], found["aws_allow_http"]) == ("http://h:1", "true")
        with pytest.raises(PipelineError, match="delta-rs takes no option storage.access_token"):
            _storage_options(Store("gs://b/x"))


def test_a_short_credential_is_hidden_and_a_part_of_words_is_not() -> None:
    given = {"secret_key": "pass", "access_key": "s3"}
    assert hidden("s3: no key pass here", given) == "s3: no key *** here"
