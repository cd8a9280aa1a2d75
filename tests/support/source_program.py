"""A program that reads tables of the data source by a session of its own, and looks for secrets.

    python source_program.py WAY FOLDER IMAGE

WAY is a master, or `connect` for a Connect server of its own. `logs` beside FOLDER has metadata
logs. The program starts a cluster with
credentials that nothing needs, reads each table, and runs the pipeline with those of a store. It
prints as JSON: the rows of each read, the scan that a plan names, and where it found a credential,
in any encoding (plans, errors, pages of the UI, the log of events).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from marked_secrets import forms
from pyspark.sql import SparkSession

import rdmeta.spark
from rdmeta import pipeline
from rdmeta.embedded import EmbeddedCluster
from rdmeta.spark.spark_session import hiding_secrets

__all__ = ["CREDENTIALS", "PASSWORD"]

PASSWORD = "hunter2-is-secret"
CREDENTIALS = {
    "security.protocol": "plaintext",  # so that the others have no effect
    "sasl.password": PASSWORD,
    "ssl.key.pem": f"-----BEGIN PRIVATE KEY-----{PASSWORD}-----END PRIVATE KEY-----",
    "sasl.jaas.config": f"x.PlainLoginModule required password='{PASSWORD}';",
}
_PAGES = (
    *("/jobs/", "/jobs/job/?id=0", "/stages/", "/environment/", "/connect/"),
    *("/SQL/", "/api/v1/applications/{app}/jobs"),
    *("/api/v1/applications/{app}/stages?details=true",),
)
_PLANS = "/api/v1/applications/{app}/sql?details=true&planDescription=true&length=1000"


def free_port() -> int:
    """Returns a port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def session_of(way: str, log: Path, port: int) -> SparkSession:
    """Returns a session with a UI, all log lines, and a log of events that is plain text."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    log.mkdir()
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.ui.enabled": "true",
        "spark.ui.port": str(port),
        "spark.log.level": "INFO",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": log.as_uri(),
        "spark.sql.session.timeZone": "UTC",
    }
    builder = SparkSession.builder.config(map=settings)
    if way == "connect":
        return hiding_secrets(builder.remote("local[2]").getOrCreate())
    return builder.master(way).getOrCreate()


def read(session: SparkSession, **given: str) -> Any:
    """Returns a data frame; `servers` stands for bootstrap.servers."""
    reader = session.read.format("rdmeta").options(**given)
    if "servers" in given:
        servers = given.pop("servers")
        reader = session.read.format("rdmeta").options(**given).option("bootstrap.servers", servers)
        for name, value in CREDENTIALS.items():
            reader = reader.option(name, value)
    return reader.load()


def pages(port: int, session: str) -> Iterator[tuple[str, str]]:
    """Yields the pages of the UI on a port; some are there for some ways alone.

    One of them is that of a session of Connect, which shows each query as the client sent it.
    """
    top = f"http://127.0.0.1:{port}"
    app = json.loads(_page(f"{top}/api/v1/applications"))[0]["id"]
    plans = _page(top + _PLANS.format(app=app))
    yield "queries", plans
    queries = (f"/SQL/execution/?id={each['id']}" for each in json.loads(plans))
    for page in (*_PAGES, *queries, f"/connect/session/?id={session}"):
        with contextlib.suppress(HTTPError):
            yield page, _page(top + page.format(app=app))


def _page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        text: bytes = answer.read()
    return text.decode(errors="replace")


def main(way: str, folder: str, image: str) -> None:
    log = Path(folder).with_name(f"events-{os.getpid()}")
    rows: dict[str, list[str]] = {}
    leaks: list[str] = []
    port, logs = free_port(), str(Path(folder).with_name("logs"))
    session = session_of(way, log, port)
    with EmbeddedCluster(brokers=3) as cluster:
        cluster.create_topic("orders", partitions=4)
        reads: dict[str, dict[str, str]] = {
            "live": {"servers": cluster.bootstrap, "table": "partitions"},
            "image": {"image": image, "table": "partitions"},
            "changes": {"path": folder},
            "silver": {"path": folder, "table": "leader_change"},
            "records": {"path": logs, "table": "records", "topic": "orders"},
            "state": {"path": logs, "table": "partitions", "at": "20"},
        }
        plans = io.StringIO()
        for name, given in reads.items():
            frame = read(session, **given)
            rows[name] = sorted(repr(row) for row in frame.collect())
            with contextlib.redirect_stdout(plans):
                frame.explain("extended")
        servers = cluster.bootstrap
        live = {"bootstrap.servers": servers, "table": "partitions", **CREDENTIALS}
        frame = rdmeta.spark.read(session, {**live, "topic": "orders"})
        rows["named"] = sorted(repr(row) for row in frame.collect())
        with contextlib.redirect_stdout(plans):
            frame.explain()
        scan = plans.getvalue().rpartition("BatchScan ")[2].partition("[")[0].replace(servers, "it")
        for key in ("'{}'", '"{}"', "`{}`", "'{}' /* it's */") if way == "connect" else ():
            options = f"image '{image}', {key.format('sasl.password')} '{PASSWORD}'"
            with contextlib.suppress(Exception):  # only the text of the statement matters
                session.sql(f"CREATE TEMPORARY VIEW seen USING rdmeta OPTIONS ({options})")
    error = ""
    try:
        read(session, **reads["live"]).collect()
    except Exception as caught:
        error = str(caught)
    out, keys = Path(folder).with_name(f"out-{os.getpid()}"), {"secret_key": PASSWORD}
    made = rdmeta.spark.run(pipeline.plan([folder], out, storage=keys), session)
    assert made.copied
    seen = dict(pages(port, getattr(session, "session_id", "")))
    assert "MapInArrow" in seen["queries"]
    shown = {"plans": plans.getvalue(), "error": error, **seen}
    version = session.version
    session.stop()
    for path in log.rglob("*"):
        shown[path.name] = path.read_text(errors="replace") if path.is_file() else ""
    secrets = forms(PASSWORD)
    leaks = [name for name, text in shown.items() if any(each in text for each in secrets)]
    told = {"rows": rows, "scan": scan, "leaks": leaks, "shown": sorted(shown), "error": error}
    print(json.dumps({**told, "version": version}))


if __name__ == "__main__":
    main(*sys.argv[1:])
