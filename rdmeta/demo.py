"""`python -m rdmeta.demo`: shows the whole path on a cluster inside this process.

It shows brokers on sockets, a client that keeps a cache true, lookups and waits. Then come the
command `rdmeta` while a broker is away, changes on disk, and tables of them by Spark. With
`--bootstrap host:port` (or BOOTSTRAP in the environment) the first half runs against that cluster
instead and only reads.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from rdmeta import ALL, Client, EmbeddedCluster, MetadataCache, Partition, Topic
from rdmeta.errors import Error, MissingExtraError

try:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
except ImportError as error:
    missing = MissingExtraError.of("rdmeta.demo", "cli", "kafka", "cffi", "spark")
    if __name__ != "__main__":
        raise missing from error
    print(f"python -m rdmeta.demo: {missing}", file=sys.stderr)
    sys.exit(2)

if TYPE_CHECKING:
    from rdmeta.client.events import Updated
    from rdmeta.history import Recorder

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
LOOKUPS = 100_000
REFRESH_EVERY = 0.25
TIMEOUT = 10.0
COMMAND_TIMEOUT = 30.0
PIPELINE_TIMEOUT = 150.0
ROWS_SHOWN = 12
LINES_SHOWN = 6

console = Console(highlight=False, soft_wrap=True)


class TimedCache(MetadataCache):
    """A cache that remembers the time of its last apply()."""

    applied_at = 0.0

    def apply(self, *args: Any, **kwargs: Any) -> Any:
        self.applied_at = time.perf_counter()
        return super().apply(*args, **kwargs)


class Waiter(threading.Thread):
    """Waits for changes of one topic, and measures the time from the answer to its wake-up."""

    def __init__(self, cache: TimedCache, topic: str) -> None:
        super().__init__(name="demo-waiter", daemon=True)
        self._cache, self._topic = cache, topic
        self._over = False
        self._since = cache.version
        self.woken: list[tuple[int, float]] = []

    def run(self) -> None:
        while not self._over:
            version = self._cache.wait_change(self._since, timeout=0.5, topics=[self._topic])
            if version is not None:
                self.woken.append((version, time.perf_counter() - self._cache.applied_at))
                self._since = version

    def stop(self) -> None:
        self._over = True
        self.join(timeout=10)


class Command:
    """A run of the command `rdmeta` in a process of its own; RDMETA_BOOTSTRAP names the cluster.

    Its output goes to a file in memory, so that it never waits for a reader.
    """

    def __init__(self, bootstrap: str, *words: str) -> None:
        console.print(f"  $ rdmeta {' '.join(words)}", style="bold", markup=False)
        kept = {k: v for k, v in os.environ.items() if not k.startswith("RDMETA_")}
        self._words = words
        self._output = os.memfd_create("rdmeta-demo")
        self._shown = 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from rdmeta.cli import main; main()", *words],
            env={**kept, "RDMETA_BOOTSTRAP": bootstrap},
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._output)

    def is_over(self) -> bool:
        """Returns whether the process has ended."""
        return self._process.poll() is not None

    def says(self, text: str) -> bool:
        """Returns whether it has printed `text`, or can no more."""
        return text in "\n".join(self._lines()) or self.is_over()

    def wait(self, timeout: float) -> None:
        """Returns when the process has ended; raises TimeoutExpired."""
        self._process.wait(timeout)

    def show(self, most: int = LINES_SHOWN) -> None:
        """Shows what it has printed since the last call; an output of more lines is cut."""
        lines = self._lines()[self._shown :]
        self._shown += len(lines)
        for line in lines[:most]:
            console.print(f"  {line.expandtabs(14)}", markup=False)
        if len(lines) > most:
            console.print(f"  [dim]... and {len(lines) - most} lines more[/]")

    def code(self) -> int:
        """Returns the exit code; raises Error if the process has not ended, or failed."""
        code = self._process.poll()
        if code != 0:
            self.show()
            raise Error(f"rdmeta {' '.join(self._words)}: exit code {code}")
        return code

    def _lines(self) -> list[str]:
        size = os.fstat(self._output).st_size
        return os.pread(self._output, size, 0).decode().splitlines()


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
    out = chosen.out or Path("demo-out", f"{datetime.now():%Y%m%d-%H%M%S}")
    began = time.monotonic()
    try:
        if chosen.bootstrap:
            with make_client(chosen.bootstrap, {}) as client:
                show_cluster(client, chosen.bootstrap)
            console.print(
                "\nThis was the half that only reads. The demo shows leader changes, history and"
                "\nSpark tables on a cluster of its own: run it without a bootstrap address."
            )
        else:
            whole_path(out)
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
    heading("A cluster in this process")
    with EmbeddedCluster(brokers=3) as cluster:
        with step(f"creating {len(TOPICS)} topics of {PARTITIONS} partitions"):
            for topic in TOPICS:
                cluster.create_topic(topic, PARTITIONS, replication_factor=3)
            cluster.set_leader(WATCHED, 0, 1)
        often = {"topic.metadata.refresh.interval.ms": int(REFRESH_EVERY * 1000)}
        with make_client(cluster.bootstrap, often) as client:
            show_cluster(client, cluster.bootstrap)
            record_changes(cluster, client, out / "history")
            show_requests(client)
        bootstrap = cluster.bootstrap
    make_tables(out, bootstrap)


def make_client(bootstrap: str, conf: Mapping[str, object]) -> Client:
    """Returns a client that keeps a cache of all topics true."""
    servers = {"bootstrap.servers": bootstrap}
    return Client({**servers, **conf}, cache=TimedCache(), topics=ALL)


def show_cluster(client: Client, bootstrap: str) -> None:
    """Has the client fill its cache from a cluster; shows its brokers and some lookups."""
    heading(f"A client of {bootstrap}")
    cache = client.cache
    with step("connecting, and asking for all topics"):
        client.refresh(timeout=TIMEOUT)
    version = cache.version
    topics = cache.topics()
    partitions = [partition for topic in topics for partition in topic.partitions]
    console.print(
        f"  cluster {cache.cluster_id}: {len(cache.brokers)} brokers, {len(topics)} topics,"
        f" {len(partitions)} partitions, version {version}"
    )
    led = Counter(partition.leader for partition in partitions)
    table = Table("broker", "address", "rack", "leads", box=None, header_style="bold")
    for broker in cache.brokers:
        address = f"{broker.host}:{broker.port}"
        table.add_row(str(broker.id), address, broker.rack or "", str(led[broker.id]))
    if led[None]:
        table.add_row("none", "", "", str(led[None]))
    console.print(table)
    with step("asking again"):
        client.refresh(timeout=TIMEOUT)
    changes = cache.changes(version)
    console.print(f"  {len(changes)} changes: version {changes.until}")
    show_lookups(cache, topics, partitions)


def show_lookups(cache: MetadataCache, topics: list[Topic], partitions: list[Partition]) -> None:
    """Shows a few lookups, and the time that one takes."""
    heading("Lookups")
    if not partitions:
        console.print("  this client may see no topic here, so there is nothing to look up")
        return
    first = topics[0].name
    for topic, partition in ((first, 0), (first, 1), (first, 12345), ("no.such.topic", 0)):
        call = f'cache.leader("{topic}", {partition})'
        console.print(f"  {call:<38} {outcome(cache, topic, partition)}", markup=False)
    chosen = random.Random(1).choices([(p.topic, p.partition) for p in partitions], k=LOOKUPS)
    bare, whole = loop_times(cache, chosen)
    console.print(
        f"  {LOOKUPS:,} lookups of random partitions in a Python loop: {whole:.0f} ns each, of"
        f" which the loop itself takes {bare:.0f} ns\n  ([bold]{whole - bare:.0f} ns per lookup[/];"
        " the best of 5 rounds each; the names are made before the loop)"
    )


def outcome(cache: MetadataCache, topic: str, partition: int) -> str:
    """Returns the text of a lookup's result, or of the exception that it raises."""
    try:
        return str(cache.leader(topic, partition))
    except Error as error:
        return f"{type(error).__name__}: {error}"


def loop_times(cache: MetadataCache, chosen: list[tuple[str, int]]) -> tuple[float, float]:
    """Returns the nanoseconds per turn of an empty loop, and of a loop that looks up leaders."""
    leader = cache.leader

    def nothing() -> None:
        for _topic, _partition in chosen:
            pass

    def lookups() -> None:
        for topic, partition in chosen:
            leader(topic, partition, None)

    def best(loop: Callable[[], None]) -> float:
        times = []
        for _ in range(5):
            began = time.perf_counter_ns()
            loop()
            times.append(time.perf_counter_ns() - began)
        return min(times) / len(chosen)

    return best(nothing), best(lookups)


class Recording:
    """The client's answers about all topics, recorded while something goes on."""

    def __init__(self, client: Client, recorder: Recorder) -> None:
        self._recorder = recorder
        self._answers: SimpleQueue[tuple[Updated, ...]] = SimpleQueue()
        client.on_update(self._answers.put)

    def go_on(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Records each answer for some time, or until something is true."""
        end = time.monotonic() + seconds
        while not until() and (left := end - time.monotonic()) > 0:
            with suppress(Empty):
                answers = self._answers.get(timeout=min(left, 0.1))
                if any(each.request.topics is ALL for each in answers):
                    self._recorder.observe()


def record_changes(cluster: EmbeddedCluster, client: Client, directory: Path) -> None:
    """Moves leaders and stops a broker, while one thread waits and a recorder writes."""
    from rdmeta.history import Recorder

    heading("Changes, while a thread waits for them")
    console.print(
        f"  a thread waits for {WATCHED}; the client refreshes every {REFRESH_EVERY} s,"
        " which is recorded"
    )
    cache = client.cache
    assert isinstance(cache, TimedCache)
    waiter = Waiter(cache, WATCHED)
    waiter.start()
    with Recorder(cache, directory) as recorder:
        recording = Recording(client, recorder)

        def show_change(what: str, change: Callable[[], None], seconds: float) -> None:
            seen = len(waiter.woken)
            console.print(f"  {what}")
            change()
            recording.go_on(seconds)
            if len(waiter.woken) > seen:
                version, latency = waiter.woken[seen]
                console.print(
                    f"  [green]the waiter was woken[/] {latency * 1e6:.0f} µs after the cache got"
                    f" the answer's bytes, at version {version}"
                )

        recording.go_on(1.0)
        others = [topic for topic in TOPICS[1:] if topic.startswith("orders")]
        show_change(
            f"{WATCHED} [0] and {len(others)} more get leader {LOST}",
            lambda: set_leaders(cluster, ((topic, 0, LOST) for topic in (WATCHED, *others))),
            1.5,
        )
        orphans = cache.partitions_on(LOST)
        show_change(
            f"broker {LOST} is lost: {len(orphans)} partitions have no leader",
            lambda: stop_broker(cluster, ((t, p, None) for t, p in orphans)),
            1.5,
        )
        with commands_meanwhile(cluster.bootstrap, recording):
            show_change(
                "the other brokers become leaders",
                lambda: set_leaders(
                    cluster, ((t, p, 1 + n % 2) for n, (t, p) in enumerate(orphans))
                ),
                2.0,
            )
        show_change(f"broker {LOST} is back", cluster.broker(LOST).up, 1.0)
    waiter.stop()
    console.print(f"  {len(recorder.files)} files of history in {directory}")


@contextmanager
def commands_meanwhile(bootstrap: str, recording: Recording) -> Iterator[None]:
    """Shows what the command says while a broker is away; the block brings the leaders back."""
    heading(f"The command, while broker {LOST} is away")
    console.print(f"  $ export RDMETA_BOOTSTRAP={bootstrap}", style="bold", markup=False)
    with Command(bootstrap, "list", "--leaderless") as listing:
        recording.go_on(COMMAND_TIMEOUT, listing.is_over)
        listing.code()
        listing.show()
    with Command(bootstrap, "wait", "-t", WATCHED, "-v", "--timeout", "60") as waiting:
        recording.go_on(COMMAND_TIMEOUT, lambda: waiting.says("no leader"))
        waiting.show()
        yield
        recording.go_on(COMMAND_TIMEOUT, waiting.is_over)
        console.print(f"  [green]rdmeta wait has ended[/] with exit code {waiting.code()}")
        waiting.show()


def show_requests(client: Client) -> None:
    """Shows why the client has asked, and how often."""
    refreshes = client.stats()["refreshes"].items()
    texts = [f"{reason} {counts['sent']}" for reason, counts in refreshes if counts["sent"]]
    console.print(f"  the client's requests by reason: {', '.join(texts)}")


def set_leaders(cluster: EmbeddedCluster, moves: Iterable[tuple[str, int, int | None]]) -> None:
    """Gives partitions these leaders."""
    for topic, partition, broker in moves:
        cluster.set_leader(topic, partition, broker)


def stop_broker(cluster: EmbeddedCluster, moves: Iterable[tuple[str, int, int | None]]) -> None:
    """Stops a broker and moves its leaders, as an embedded cluster has no elections."""
    cluster.broker(LOST).down()
    set_leaders(cluster, moves)


def make_tables(out: Path, bootstrap: str) -> None:
    """Runs `rdmeta pipeline all` over the recorded history and shows its tables."""
    heading("Tables of that history")
    from rdmeta.pipeline import check
    from rdmeta.spark import find_java

    engine = "spark"
    try:
        find_java()
    except Error as error:
        console.print(f"  [yellow]without Spark:[/] {escape(str(error))}")
        engine = "local"
    history, tables = out / "history", out / "tables"
    words = ("pipeline", "all", str(history), str(tables), "--engine", engine)
    with Command(bootstrap, *words) as command:
        command.wait(PIPELINE_TIMEOUT)
        command.code()
        command.show(len(CHOICES) + 30)
    for table, choice in CHOICES.items():
        show_table(table, tables, choice)
    faults = check(tables)
    if faults:
        raise Error(f"{faults[0].path}: {faults[0].reason}")
    console.print(f"\n  {history}   change records, Parquet")
    console.print(f"  {tables}   tables, Parquet, as their manifest says")


def is_watched(row: dict[str, Any]) -> bool:
    """Returns whether a row is a period of the watched partition."""
    return bool(row["topic"] == WATCHED and row["partition"] == 0)


CHOICES: dict[str, tuple[str, Callable[[dict[str, Any]], bool], tuple[str, ...]]] = {
    "partition_interval": (
        f"periods of {WATCHED} [0]",
        is_watched,
        ("leader", "leader_epoch", "isr", "began_at", "us", "began_by", "ended_by"),
    ),
    "leader_change": (
        f"the first {ROWS_SHOWN} changes of leader",
        lambda row: True,
        ("observed_at", "topic", "partition", "old_leader", "new_leader", "new_leader_epoch"),
    ),
    "incident": (
        "partitions had no leader",
        lambda row: row["kind"] == "leaderless",
        ("began_at", "ended_at", "minutes", "most", "partitions", "topics"),
    ),
    "churn_day": (
        f"leaderships that broker {LOST} gained and lost",
        lambda row: row["broker"] == LOST,
        ("day", "broker", "gained", "lost", "kept", "elections"),
    ),
    "balance_hour": (
        "what each broker led, on average",
        lambda row: row["kind"] == "broker",
        ("hour", "broker", "leaders", "replicas", "preferred_led_by_others", "skew"),
    ),
    "coverage_hour": (
        "minutes that were observed; all other time was not",
        lambda row: True,
        ("hour", "observed", "hole"),
    ),
}


def show_table(
    name: str, tables: Path, choice: tuple[str, Callable[[dict[str, Any]], bool], tuple[str, ...]]
) -> None:
    """Shows some rows and columns of one table, in order."""
    import pyarrow.parquet as pq

    from rdmeta.pipeline.tables import SCHEMAS

    title, wanted, columns = choice
    layer = "silver" if name in SCHEMAS else "gold"
    folder = tables / layer / "v1" / name
    rows = [
        r for path in folder.rglob("*.parquet") for r in pq.ParquetFile(path).read().to_pylist()
    ]
    times = ("began_at", "observed_at", "day", "hour")
    order = next(column for column in times if column in columns)
    chosen = sorted(filter(wanted, rows), key=lambda row: (row[order], row.get("broker") or 0))
    console.print(f"\n[bold]{name}[/]: {escape(title)}, of {len(rows)} rows")
    heads = [column.replace("leader_epoch", "epoch") for column in columns]
    table = Table(*heads, box=None, header_style="bold", pad_edge=False)
    for row in chosen[:ROWS_SHOWN]:
        table.add_row(*(cell(row[column]) for column in columns))
    console.print(table)


def cell(value: object) -> str:
    """Returns a value as text for a table."""
    if value is None:
        return "none"
    if isinstance(value, datetime):
        if value.time() == datetime.min.time():
            return f"{value:%Y-%m-%d}"
        return f"{value:%H:%M:%S.%f}"[:-3]
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)


def heading(text: str) -> None:
    console.print(f"\n[bold cyan]{text}[/]")


@contextmanager
def step(text: str) -> Iterator[None]:
    """Prints what the block does before it runs, and how long it took afterwards."""
    console.print(f"  {text} ...")
    began = time.perf_counter()
    yield
    console.print(f"  [dim]  {(time.perf_counter() - began) * 1e3:.1f} ms[/]")


if __name__ == "__main__":
    sys.exit(main())
