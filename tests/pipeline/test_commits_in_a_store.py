"""Tables in an object store: commits keep runs apart, and the one that is second plans again.

The store is a process of its own, as delta-rs holds Python's lock while it waits for an answer.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import boto3
import pytest
from logged_tables import SILVER, configured_catalog, made, rows_of_folder
from processes import environment
from recorded import cluster_day

from rdmeta import pipeline
from rdmeta.pipeline import running
from rdmeta.pipeline.committing import LoggedTable
from rdmeta.pipeline.layout import StoredName, TableKind
from rdmeta.pipeline.logs import logs_of
from rdmeta.pipeline.store import Store

pytest.importorskip("deltalake", reason="the extra delta is not installed")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KEYS = {"aws_access_key_id": "k", "aws_secret_access_key": "s", "region_name": "us-east-1"}
PROGRAM = """
import sys
from rdmeta import pipeline
plan = pipeline.plan([sys.argv[1]], sys.argv[2])
print("planned", flush=True)
sys.stdin.readline()
pipeline.run(plan, workers=1)
"""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            end = time.monotonic() + 60
            while time.monotonic() < end:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield f"127.0.0.1:{port}"
        finally:
            server.kill()


@pytest.fixture
def out(endpoint: str) -> str:
    """Returns the URI of a folder in a new bucket."""
    name = f"bucket-{uuid4().hex}"
    boto3.client("s3", endpoint_url=f"http://{endpoint}", **KEYS).create_bucket(Bucket=name)
    where = f"endpoint_override={quote(endpoint, safe='')}&region=us-east-1"
    return f"s3://k:s@{name}/out?scheme=http&{where}"


@pytest.fixture
def lake(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configures the catalog `lake` of Iceberg."""
    pytest.importorskip("pyiceberg.catalog.sql", reason="the extra iceberg is not installed")
    about = {"TYPE": "sql", "URI": f"sqlite:///{tmp_path / 'lake.db'}", "WAREHOUSE": "s3://lake"}
    keys = {"S3__ACCESS_KEY_ID": "k", "S3__SECRET_ACCESS_KEY": "s", "S3__REGION": "us-east-1"}
    about |= {"S3__ENDPOINT": f"http://{endpoint}", **keys}
    configured_catalog(monkeypatch, "LAKE", **about)


def assert_in_lake(source: Path, folder: Path) -> None:
    """Compares the tables of the catalog, of two runs, with those of a new folder."""
    from pyiceberg.catalog import load_catalog

    made(source, folder)
    for table in SILVER:
        found = load_catalog("lake").load_table((f"rdmeta_{table.layer}", table.name))
        assert len(found.snapshots()) == 2
        seen = found.scan().to_arrow().drop_columns([table.partition_by[1]]).to_pylist()
        wanted = rows_of_folder(folder, table)
        assert sorted(str(sorted(row.items())) for row in seen) == wanted


def rows(out: str, table: LoggedTable) -> list[str]:
    """Returns the rows of a table in the store as delta-rs sees them, in an order of their own."""
    logs: Any = logs_of(Store(out), TableKind("delta"))
    found = logs.state(table).handle.to_pyarrow_table().drop_columns([table.partition_by[1]])
    return sorted(str(sorted(row.items())) for row in found.to_pylist())


def assert_as_made(out: str, sources: list[Path], folder: Path) -> None:
    """Compares the tables with those of a local folder that has the same history."""
    pipeline.run(pipeline.plan(sources, folder, tables="delta"), workers=1)
    for table in SILVER:
        assert rows(out, table) == rows(str(folder), table)
    assert pipeline.check(out) == []


def test_a_folder_in_a_store_has_the_same_tables(out: str, tmp_path: Path) -> None:
    source = tmp_path / "history"
    cluster_day(source, "a/b %", 1)
    made(source, out, tables="delta")
    cluster_day(source, "one", 1)
    made(source, out)
    assert_as_made(out, [source], tmp_path / "out")
    assert not Store(out).has("lock")
    again = made(source, out)
    assert (again.made, again.copied) == ([], [])


def test_a_vacuum_in_a_store_spares_young_files_that_no_version_has(
    out: str, tmp_path: Path
) -> None:
    source = tmp_path / "history"
    cluster_day(source, "one", 1)
    made(source, out, tables="delta")
    store = Store(out)
    (first,) = (each.name for each in store.files(SILVER[0].folder) if "part-" in each.name)
    about = StoredName.parse(first)
    assert about is not None
    young = first.replace(about.digest, "0" * 32)
    store.put(young, b"of a run that works")
    cluster_day(source, "one", 2)
    made(source, out)
    done = pipeline.vacuum(out, "0h")
    assert first in done.files
    assert len(done.files) == len(SILVER)
    assert store.has(young)
    assert pipeline.check(out) == []


# A store that denies everything, and shows the key that it was asked with, as S3 does.
DENIES = """
import http.server
class Denying(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        key = self.headers.get("Authorization", "").partition("Credential=")[2].partition("/")[0]
        text = f"<Error><Code>InvalidAccessKeyId</Code><Key>{key}</Key></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode() if self.command != "HEAD" else b"")
    do_PUT = do_POST = do_HEAD = do_GET
server = http.server.HTTPServer(("127.0.0.1", 0), Denying)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture
def denying() -> Iterator[str]:
    """Yields the URL of a store that denies; it is a process of its own."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    with subprocess.Popen([sys.executable, "-c", DENIES], **pipes) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
        server.kill()


def test_a_store_that_denies_a_commit_is_one_line_without_the_key(
    out: str, denying: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Credentials come by options: the URI has none, and the next run commits what is there."""
    from rdmeta.pipeline.delta import DeltaLogs

    given = {"access_key": "key-of-the-test", "secret_key": "secret-of-the-test"}
    out = out.replace("k:s@", "")
    cluster_day(tmp_path / "history", "one", 1)
    commit = DeltaLogs.commit

    def denied(self: DeltaLogs, *arguments: Any) -> None:
        assert self._options is not None
        self._options["aws_endpoint_url"] = denying
        commit(self, *arguments)

    def run() -> Any:
        plan = pipeline.plan([tmp_path / "history"], out, tables="delta", storage=given)
        return pipeline.run(plan, workers=1)

    with monkeypatch.context() as patch:
        patch.setattr(DeltaLogs, "commit", denied)
        with pytest.raises(pipeline.PipelineError, match="partition_interval: .*403") as caught:
            run()
    assert "of-the-test" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert run().made == []  # only committed
    assert pipeline.check(out, storage=given) == []


def test_the_run_that_commits_second_plans_again(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run with more input comes between the files of a run and its commit."""
    from rdmeta.pipeline.delta import DeltaLogs

    source, other = tmp_path / "history", tmp_path / "other"
    cluster_day(source, "one", 1)
    made(source, out, tables="delta")
    cluster_day(source, "one", 2)
    cluster_day(other, "one", 2, at=50_000)
    cluster_day(other, "two", 1)
    commit, count = DeltaLogs.commit, 0

    def beaten(self: DeltaLogs, *arguments: Any) -> None:
        nonlocal count
        count += 1
        if count == 1:
            pipeline.run(pipeline.plan([source, other], out), workers=1)
        commit(self, *arguments)

    monkeypatch.setattr(DeltaLogs, "commit", beaten)
    made(source, out)
    monkeypatch.undo()
    assert_as_made(out, [source, other], tmp_path / "out")


@pytest.mark.parametrize(
    "late", ["write_manifest", pytest.param("write_inputs", marks=pytest.mark.nightly)]
)
def test_a_manifest_that_a_slower_run_puts_over_a_newer_one_is_mended_by_the_next(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: str
) -> None:
    """Another run with more input comes between the commits of a run and its last files."""
    source, other = tmp_path / "history", tmp_path / "other"
    cluster_day(source, "one", 1)
    cluster_day(other, "one", 1, at=50_000)
    cluster_day(other, "two", 1)
    made(source, out, tables="delta")
    cluster_day(source, "one", 2)
    write, count = getattr(running, late), 0

    def overtaken(*arguments: Any) -> None:
        nonlocal count
        count += 1
        if count == 1:
            pipeline.run(pipeline.plan([source, other], out), workers=1)
        write(*arguments)

    monkeypatch.setattr(running, late, overtaken)
    made(source, out)
    monkeypatch.undo()
    assert pipeline.check(out) != []
    assert made(source, out).made == []  # the logs have all, and copies of `other` are in bronze
    assert_as_made(out, [source, other], tmp_path / "out")


def run_at_once(program: str, source: Path, out: str) -> None:
    """Lets two processes make their plans, and then run them beside each other."""
    words = [sys.executable, "-c", program, str(source), out]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    runs: list[Any] = [subprocess.Popen(words, env=environment(), **pipes) for _ in range(2)]  # type: ignore[call-overload]
    for each in runs:
        assert each.stdout.readline() == "planned\n"
    for each in runs:
        each.stdin.write("\n")
        each.stdin.flush()
    for each in runs:
        each.communicate(timeout=120)
        assert each.returncode == 0


@pytest.mark.parametrize("is_first", [False, True])
def test_two_runs_at_once_leave_each_row_once(out: str, tmp_path: Path, is_first: bool) -> None:
    source = tmp_path / "history"
    cluster_day(source, "one", 1)
    if not is_first:
        made(source, out, tables="delta")
        cluster_day(source, "one", 2)
    run_at_once(PROGRAM.replace("[2])", "[2], tables='delta')"), source, out)
    assert_as_made(out, [source], tmp_path / "out")


@pytest.mark.usefixtures("lake")
def test_tables_of_iceberg_lie_in_a_store(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that commits second plans again, as another run comes before its commit."""
    from rdmeta.pipeline.iceberg import IcebergLogs

    source = tmp_path / "history"
    cluster_day(source, "a/b %", 1)
    made(source, out, tables="iceberg", catalog="lake")
    cluster_day(source, "a/b %", 2)
    commit, count = IcebergLogs.commit, 0

    def beaten(self: IcebergLogs, *arguments: Any) -> None:
        nonlocal count
        count += 1
        if count == 1:
            made(source, out)
        commit(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(IcebergLogs, "commit", beaten)
        assert made(source, out).made == []
    assert_in_lake(source, tmp_path / "folder")
    assert pipeline.check(out) == []


@pytest.mark.usefixtures("lake")
def test_two_runs_at_once_are_one_snapshot_of_iceberg(out: str, tmp_path: Path) -> None:
    source = tmp_path / "history"
    cluster_day(source, "one", 1)
    made(source, out, tables="iceberg", catalog="lake")
    cluster_day(source, "one", 2)
    run_at_once(PROGRAM, source, out)
    assert_in_lake(source, tmp_path / "folder")
    assert pipeline.check(out) == []
