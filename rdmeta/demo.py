"""`python -m rdmeta.demo`: shows the whole path on a cluster inside this process.

It shows brokers on sockets, a client that keeps a cache true, and waits for changes. Then come the
command `rdmeta` while a broker is away, changes on disk, a generated week of three clusters with a
bad Friday, and tables of both by Spark, with a measure as a DataFrame; without Java by the command
and DuckDB. Then comes what the metadata log of a real cluster says, with tables of it, and last the
page of the week of all these clusters. With `--bootstrap host:port` (or BOOTSTRAP in the
environment) the first part runs against that cluster instead and only reads. The programs of
examples/ show each call.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rdmeta import ALL, Client, EmbeddedCluster, MetadataCache
from rdmeta._escaping import escaped
from rdmeta.errors import Error, MissingExtraError

try:
    from rich.console import Console
    from rich.markup import escape
except ImportError as error:
    missing = MissingExtraError.of("rdmeta.demo", "cli", "kafka", "cffi", "spark", "report")
    if __name__ != "__main__":
        raise missing from error
    print(f"python -m rdmeta.demo: {missing}", file=sys.stderr)
    sys.exit(2)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rdmeta.client.actions import Updated

TOPICS = tuple(
    f"{what}.{where}-{number}"
    for what in ("orders", "payments", "shipments", "refunds", "clicks")
    for where in ("eu", "us")
    for number in range(5)
)
PARTITIONS = 6
LOST = 3
"""The broker that the demo stops."""

WATCHED = TOPICS[0]
REFRESH_MS = 250
PAUSE = 1.0
"""How long each state stands, so that the tables show it."""

TIMEOUT = 10.0
LINES_SHOWN = 6
# A log of three nodes of Apache Kafka, of which two were killed; a source tree has it.
REAL_LOG = Path(__file__).resolve().parents[1] / "tests/golden/kraft/4.3.0"
# The demo runs one query for each table, and shows its rows.
QUERIES = {
    "silver/v1/partition_interval": (
        "SELECT leader, leader_epoch, isr, began_at, us, began_by, ended_by"
        f" FROM partition_interval WHERE topic = '{WATCHED}' AND partition = 0 ORDER BY began_at"
    ),
    "silver/v1/leader_change": (
        "SELECT observed_at, topic, partition, old_leader, new_leader, new_leader_epoch"
        " FROM leader_change ORDER BY observed_at, topic, partition LIMIT 8"
    ),
    "gold/v1/incident": (
        "SELECT began_at, minutes, most, partitions FROM incident WHERE kind = 'leaderless'"
    ),
    "gold/v1/churn_day": (
        f"SELECT day, broker, gained, lost, kept FROM churn_day WHERE broker = {LOST}"
    ),
    "gold/v1/balance_hour": (
        "SELECT hour, broker, leaders, replicas, skew FROM balance_hour WHERE kind = 'broker'"
        " ORDER BY hour, broker"
    ),
    "gold/v1/coverage_hour": "SELECT hour, observed, hole FROM coverage_hour ORDER BY hour",
}
LOG_QUERIES = {
    "partition_interval": (
        'SELECT began_at, leader, isr, elr, began_by, "offset" FROM partition_interval'
        " WHERE topic = 'risky' ORDER BY version"
    ),
    "controller": 'SELECT broker, epoch, began_at, us, "offset" FROM controller ORDER BY began_at',
}

# The measure that Spark shows as a DataFrame where it is.
MEASURE = "incident"

console = Console(highlight=False, soft_wrap=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the demo; returns 0 if all went well, also without Spark, and 1 if not.

    Returns 2 for bad usage, or if an extra is missing.
    """
    parser = argparse.ArgumentParser(prog="python -m rdmeta.demo", description=__doc__)
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        default=os.environ.get("BOOTSTRAP") or None,
        help="read from this cluster of yours, which must have a plaintext listener",
    )
    parser.add_argument(
        "--out", metavar="DIR", type=Path, help="write files to DIR; demo-out/<time> if absent"
    )
    chosen = parser.parse_args(arguments)
    shown = logging.StreamHandler(sys.stdout)
    shown.setFormatter(logging.Formatter("  the client logs: %(message)s"))
    logging.getLogger("rdmeta").addHandler(shown)
    began = time.monotonic()
    try:
        if chosen.bootstrap:
            with Client({"bootstrap.servers": chosen.bootstrap}, topics=ALL) as client:
                show_cluster(client, chosen.bootstrap)
            console.print(
                "\nThis was the part that only reads. The demo shows leader changes, history and"
                "\nSpark tables on a cluster of its own: run it without a bootstrap address."
            )
        else:
            whole_path(chosen.out or Path("demo-out", f"{datetime.now():%Y%m%d-%H%M%S}"))
    except (ValueError, MissingExtraError) as error:
        console.print(f"[red]{escape(str(error))}[/]")
        return 2
    except Error as error:
        console.print(f"[red]{type(error).__name__}:[/] {escape(str(error))}")
        return 1
    console.print(f"\nDone in {time.monotonic() - began:.0f} s.")
    return 0


def whole_path(out: Path) -> None:
    """Runs the demo on a cluster of its own and writes files below `out`."""
    from rdmeta.history import Recorder

    heading("A cluster in this process")
    cache = MetadataCache()
    with EmbeddedCluster(brokers=3) as cluster, Recorder(cache, out / "history") as recorder:
        console.print(f"  creating {len(TOPICS)} topics of {PARTITIONS} partitions")
        for topic in TOPICS:
            cluster.create_topic(topic, PARTITIONS, replication_factor=3)
        cluster.set_leader(WATCHED, 0, 1)
        bootstrap = cluster.bootstrap
        conf = {
            "bootstrap.servers": bootstrap,
            "topic.metadata.refresh.interval.ms": REFRESH_MS,
        }

        def record(answers: tuple[Updated, ...]) -> None:
            if any(answer.request.topics is ALL for answer in answers):
                recorder.observe()

        with Client(conf, cache=cache, topics=ALL) as client:
            show_cluster(client, bootstrap)
            client.on_update(record)
            show_changes(cluster, client)
    console.print(f"  {len(recorder.files)} files of history in {out / 'history'}")
    assert cache.cluster_id is not None
    make_tables(out, bootstrap, cache.cluster_id)
    show_log(bootstrap, out)
    show_report(out)


def show_report(out: Path) -> None:
    """Writes the page of the week of all clusters, and shows its first sentences."""
    from rdmeta import report

    heading("The week of these clusters on one page")
    # Without a first day, the page of today and six days before would lack the week's first one.
    first = json.loads((out / "week" / "truth.json").read_text(encoding="utf-8"))["begin"][:10]
    made, page = report.make(out / "tables", since=first), out / "report.html"
    page.write_text(made.html, encoding="utf-8")
    for section in json.loads(made.json)["sections"][:3]:
        console.print(f"  {section['title']}: {escaped(section['sentence'])}", markup=False)
    console.print(f"\n  {page}", style="bold", markup=False)


def show_log(bootstrap: str, out: Path) -> None:
    """Shows what the files of real controllers say: who led, what shrank an ISR, and tables."""
    import duckdb
    import pyarrow.parquet as pq

    if not REAL_LOG.exists():
        return
    heading("The metadata log of a real cluster, of which two nodes were killed")
    path = os.path.relpath(REAL_LOG)
    for words in (("info", path), ("explain", path, "risky/0")):
        with command(bootstrap, "log", *words) as reading:
            show(reading, most=50)
    tables = out / "tables-of-the-log"
    silver = ("pipeline", "silver", path, str(tables), "--engine", "local")
    with command(bootstrap, *silver) as pipeline:
        show(pipeline, most=50)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, query in LOG_QUERIES.items():
            rows = pq.read_table(tables / f"silver/v1/{name}", partitioning=None)
            connection.register(name, rows)
            console.print(f"\n{name}: {query}", style="bold", markup=False)
            print(connection.sql(query))


def show_cluster(client: Client, bootstrap: str) -> None:
    """Has the client fill its cache from a cluster; shows its brokers and some lookups."""
    heading(f"A client of {bootstrap}")
    cache = client.cache
    client.refresh(timeout=TIMEOUT)
    topics = cache.topics()
    partitions = [partition for topic in topics for partition in topic.partitions]
    tell(
        f"cluster {cache.cluster_id}: {len(cache.brokers)} brokers, {len(topics)} topics,"
        f" {len(partitions)} partitions, version {cache.version}"
    )
    led = Counter(partition.leader for partition in partitions)
    for broker in cache.brokers:
        tell(f"broker {broker.id}, {broker.host}:{broker.port}, leads {led[broker.id]}")
    if not partitions:
        console.print("  this client may see no topic here, so there is nothing to look up")
        return
    known = [(each.topic, each.partition) for each in partitions[:3]]
    for topic, partition in (*known, ("no.such.topic", 0)):
        try:
            found = str(cache.leader(topic, partition))
        except Error as error:
            found = f"{type(error).__name__}: {error}"
        tell(f'cache.leader("{topic}", {partition})  {found}')


def tell(line: str) -> None:
    """Prints a line with texts of a cluster."""
    console.print(f"  {escaped(line)}", markup=False)


def show_changes(cluster: EmbeddedCluster, client: Client) -> None:
    """Moves leaders, and stops a broker for a while; the client sees each change."""
    heading(f"Changes, seen by a client that asks every {REFRESH_MS} ms")
    cache = client.cache

    def show_change(what: str, change: Callable[[], None], topics: list[str] | None) -> None:
        time.sleep(PAUSE)
        console.print(f"  {what}")
        version, began = cache.version, time.monotonic()
        change()
        seen = cache.wait_change(version, timeout=TIMEOUT, topics=topics)
        if seen is None:
            raise Error(f"the client has seen no change for {TIMEOUT:.0f} s")
        took = (time.monotonic() - began) * 1e3
        console.print(f"  [green]the client has seen it[/] {took:.0f} ms later: version {seen}")

    def lead(partitions: Sequence[tuple[str, int]], *brokers: int | None) -> None:
        for n, (topic, partition) in enumerate(partitions):
            cluster.set_leader(topic, partition, brokers[n % len(brokers)])

    def stop_broker() -> None:
        cluster.broker(LOST).down()
        lead(orphans, None)  # an embedded cluster has no elections

    orders = [(topic, 0) for topic in TOPICS if topic.startswith("orders")]
    show_change(
        f"{len(orders)} partitions, {WATCHED} [0] among them, get leader {LOST}",
        lambda: lead(orders, LOST),
        [WATCHED],
    )
    orphans = cache.partitions_on(LOST)
    show_change(
        f"broker {LOST} is lost: {len(orphans)} partitions have no leader", stop_broker, [WATCHED]
    )
    heading(f"The command, while broker {LOST} is away")
    with command(cluster.bootstrap, "list", "--leaderless") as listing:
        show(listing)
    with command(cluster.bootstrap, "wait", "-t", WATCHED, "-v", "--timeout", "60") as waiting:
        show(waiting, until="no leader")
        show_change("the other brokers become leaders", lambda: lead(orphans, 1, 2), [WATCHED])
        show(waiting)
        console.print("  [green]rdmeta wait has ended[/] with exit code 0")
    show_change(f"broker {LOST} is back", cluster.broker(LOST).up, None)
    time.sleep(PAUSE)


def make_tables(out: Path, bootstrap: str, cluster_id: str) -> None:
    """Makes the tables of the recorded history and of a generated week, by Spark or the command.

    It shows those of the recorded cluster.
    """
    import duckdb
    import pyarrow.parquet as pq

    from rdmeta.pipeline import check

    heading("Tables of that history, and of a generated week")
    history, week, tables = out / "history", out / "week", out / "tables"
    with command(bootstrap, "generate", "bad-friday", str(week)) as generating:
        show(generating)
    with spark_session() as session, duckdb.connect() as connection:
        if session is None:
            words = ("pipeline", "all", str(history), str(week), str(tables), "--engine", "local")
            with command(bootstrap, *words) as pipeline:
                show(pipeline, most=50)
        else:
            make_by_spark(session, [history, week], tables)
        connection.execute("SET TimeZone = 'UTC'")
        for folder, query in QUERIES.items():
            name = folder.rpartition("/")[2]
            if session is not None and name == MEASURE:
                show_measure(session, tables, cluster_id)
                continue
            of_cluster = [("cluster_id", "=", cluster_id)]
            rows = pq.read_table(tables / folder, partitioning=None, filters=of_cluster)
            connection.register(name, rows)
            console.print(f"\n{name}: {query}", style="bold", markup=False)
            print(connection.sql(query))
    if faults := check(tables):
        raise Error(f"{faults[0].path}: {faults[0].reason}")
    console.print(f"\n  {history}   change records, Parquet")
    console.print(f"  {week}   what three generated clusters tell, and truth.json")
    console.print(f"  {tables}   tables, Parquet, as their manifest says")


@contextmanager
def spark_session() -> Iterator[SparkSession | None]:
    """Yields a session of Spark, or None if there is no Java or no pyspark, and says so."""
    from rdmeta.spark.spark_session import build_session

    try:
        session = build_session(short=True)
    except Error as error:
        console.print(f"  [yellow]without Spark:[/] {escape(str(error))}")
        console.print(f"  so the command makes the tables, and DuckDB shows the measure {MEASURE}")
        yield None
        return
    try:
        yield session
    finally:
        session.stop()


def make_by_spark(session: SparkSession, inputs: list[Path], tables: Path) -> None:
    """Makes tables and measures on the executors of a session."""
    from rdmeta import pipeline, spark

    tell(f"Spark {session.version} makes them on this machine, as on a cluster:")
    call = f"rdmeta.pipeline.plan({list(map(str, inputs))}, '{tables}', gold=True)"
    console.print(f"  >>> rdmeta.spark.run({call}, session)", style="bold", markup=False)
    made = spark.run(pipeline.plan(inputs, tables, gold=True), session)
    tell(f"{len(made.copied)} files copied, {len(made.made)} made")


def show_measure(session: SparkSession, tables: Path, cluster_id: str) -> None:
    """Shows a measure as a DataFrame, which Spark SQL makes of silver."""
    from rdmeta import spark

    lost = f"kind = 'leaderless' AND cluster_id = '{cluster_id}'"
    columns = ("began_at", "minutes", "most", "partitions")
    console.print(f"\n{MEASURE}, as a DataFrame of Spark:", style="bold")
    for line in (
        f"gold = rdmeta.spark.measures(rdmeta.spark.tables(session, '{tables}'))",
        f'gold.{MEASURE}.where("{lost}").select{columns}.show()',
    ):
        console.print(f"  >>> {line}", style="bold", markup=False)
    gold = spark.measures(spark.tables(session, tables))
    gold.incident.where(lost).select(*columns).show()


@contextmanager
def command(bootstrap: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Runs the command `rdmeta` in a process of its own; RDMETA_BOOTSTRAP names the cluster."""
    console.print(f"  $ rdmeta {' '.join(words)}", style="bold", markup=False)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("RDMETA_")}
    with subprocess.Popen(
        [sys.executable, "-c", "from rdmeta.cli import main; main()", *words],
        env={**kept, "RDMETA_BOOTSTRAP": bootstrap},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def show(process: subprocess.Popen[str], most: int = LINES_SHOWN, until: str | None = None) -> None:
    """Shows what a command prints, up to a line with `until` or to its end.

    Raises Error if the command ends with another exit code than 0.
    """
    assert process.stdout is not None
    lines = 0
    for line in process.stdout:
        lines += 1
        if lines <= most:
            console.print(f"  {line.rstrip().expandtabs(14)}", markup=False)
        if until is not None and until in line:
            return
    if lines > most:
        console.print(f"  [dim]... and {lines - most} lines more[/]")
    if code := process.wait():
        assert isinstance(process.args, list)
        raise Error(f"rdmeta {' '.join(process.args[3:])}: exit code {code}")


def heading(text: str) -> None:
    console.print(f"\n[bold cyan]{text}[/]")


if __name__ == "__main__":
    sys.exit(main())
