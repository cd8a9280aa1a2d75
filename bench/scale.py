"""Writes docs/internals/scale.md: what a large fleet takes, by the rows of `make bench-spark`.

A sentence or a row whose figure has not been measured is left out, and named at the page's end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bench.build import ROOT
from bench.figure import Scale, count
from bench.figures_spark import silver_name
from bench.results import Row, commit_of, digits

PAGE = ROOT / "docs/internals/scale.md"

RECORDS = 1_000  # millions of change records a day
FLEET = 300  # clusters
SCALE = Scale()
SIZE = max(SCALE.spark_sizes)
LESS = sorted(SCALE.spark_sizes)[-2]
LOG_DAYS = 10  # of each cluster in bench/spark/logs.py
CLUSTER_DAYS = 100  # of the largest history: 10 clusters, 10 days

HEAD = f"""\
# A billion records a day

<!-- `make bench-spark` writes this page from bench/results.json: do not edit it. -->

What does the pipeline need for a large fleet: {RECORDS / 1_000:g} billion change records a day,
from {FLEET} clusters? Nobody has run that load at once. Each number is a run on one machine,
multiplied; the last section names the runs. So the page also says why the work grows no faster than
the records.
"""

WHY = """\
## Why it can be multiplied

- A task makes all tables of one cluster's day, or of a part of a day with more than 10 million
  records. It reads only that day's files, as each day begins with the whole state. Tasks share
  nothing, and no rows pass from one to another: there is no shuffle and no sort.
- A worker holds one small row for each partition, broker, topic and configuration of its task. It
  also holds a batch of the input, and the day's changes of leader. It holds no other rows.
- Each file has one name and is made by one task. So a task that is lost is made again, alone.
- The driver reads the footer and the digest of each new file once. It holds one line for each file
  in `input.parquet` and in the manifest, which is cut by cluster and month.
- A day that has not changed is neither read nor written.
"""

LIMITS = """\
## What was not measured

- More than two executors, more than one machine, and an object store. There the network decides,
  and the bytes above are what passes over it.
- Clusters of very different sizes. The longest task is the longest day of a cluster, or a part of
  10 million records of it. It bounds the time from below.
- More than one year in one folder. `input.parquet` grows with the files, and each run reads it.
"""


class MeasuredFacts:
    """The measured rows by name; it notes which are missing."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows: Mapping[str, Row] = {str(row["name"]): row for row in rows}
        self.used: dict[str, Row] = {}
        self.missing: dict[str, None] = {}

    def pair(self, name: str) -> tuple[float, float]:
        """Returns a row's value and reference; raises KeyError if it was not measured."""
        if name not in self._rows:
            self.missing[name] = None
            raise KeyError(name)
        row = self.used[name] = self._rows[name]
        return float(row["value"]), float(row["reference"])


def _number(value: float) -> str:
    return f"{value:,.0f}".replace(",", " ") if value >= 100 else digits(float(value))


def _per_million(facts: MeasuredFacts, what: str) -> tuple[float, float]:
    """Returns a row of the largest history for a million of records: its value, its reference."""
    value, other = facts.pair(f"{silver_name(SIZE)}: {what}")
    return value * 1e6 / SIZE, other * 1e6 / SIZE


def _records(facts: MeasuredFacts) -> str:
    _, millions = facts.pair(f"{silver_name(SIZE)}: CPU of plain processes")
    return f"records read in that run | {_number(millions)} million | {_number(RECORDS)} million"


def _history(facts: MeasuredFacts) -> str:
    _, mib = _per_million(facts, "bytes of tables")
    return f"history, zstd Parquet | {_number(mib * SIZE / 1e6)} MiB | {_gib(mib * RECORDS)}"


def _tables(facts: MeasuredFacts) -> str:
    mib, _ = _per_million(facts, "bytes of tables")
    return f"tables of silver | {_number(mib * SIZE / 1e6)} MiB | {_gib(mib * RECORDS)}"


def _gib(mib: float) -> str:
    return f"{_number(mib / 1024)} GiB"


def _fleet(number: float) -> str:
    """Returns the cells of what each cluster's day has: of the run, and of the fleet's day."""
    return f"{_number(number)} | {_number(number * FLEET / CLUSTER_DAYS)}"


def _input_files(facts: MeasuredFacts) -> str:
    _, files = facts.pair(f"{silver_name(SIZE)}: files of tables")
    return f"files of history, one an hour | {_fleet(files)}"


def _files(facts: MeasuredFacts) -> str:
    files, _ = facts.pair(f"{silver_name(SIZE)}: files of tables")
    return f"files of tables | {_fleet(files)}"


def _tasks(facts: MeasuredFacts) -> str:
    tasks, _ = facts.pair(f"{silver_name(SIZE)}: tasks")
    return (
        f"tasks, one a cluster and day | {_number(tasks)} | {_number(tasks * FLEET / CLUSTER_DAYS)}"
    )


def _cpu(facts: MeasuredFacts) -> str:
    seconds, millions = facts.pair(f"{silver_name(SIZE)}: CPU of plain processes")
    hours = seconds / millions * RECORDS / 3600
    return f"CPU time, all of it | {_number(seconds)} s | {_number(hours)} hours"


def _spark_cpu(facts: MeasuredFacts) -> str:
    spark, plain = facts.pair(f"{silver_name(SIZE)}, local[2]")
    hours = 2 * spark * RECORDS / (SIZE / 1e6) / 3600
    return f"core-hours of Spark on two cores | {_number(2 * spark / 3600)} | {_number(hours)}"


TABLE: tuple[Callable[[MeasuredFacts], str], ...] = (
    _records,
    _history,
    _tables,
    _input_files,
    _files,
    _tasks,
    _cpu,
    _spark_cpu,
)


def _speed(facts: MeasuredFacts) -> str:
    spark, plain = facts.pair(f"{silver_name(SIZE)}, local[2]")
    less, _ = facts.pair(f"{silver_name(LESS)}, local[2]")
    times = spark / less
    return (
        f"Spark on two cores reads {_number(SIZE / 1e6 / spark)} million records a second, and two"
        f" plain processes read {_number(SIZE / 1e6 / plain)} million. {count(SIZE)} records take"
        f" {_number(times)} times as long as {count(LESS)}."
    )


def _memory(facts: MeasuredFacts) -> str:
    most, _ = facts.pair(f"a Python worker's most memory, {count(SIZE)} changes")
    less, first = facts.pair(f"a Python worker's most memory, {count(LESS)} changes")
    return (
        f"A Python worker takes {_number(most)} MiB at most for {count(SIZE)} records,"
        f" {_number(less)} MiB for {count(LESS)} and {_number(first)} MiB for"
        f" {count(min(SCALE.spark_sizes))}."
    )


def _executors(facts: MeasuredFacts) -> str:
    size = count(SCALE.spark_changes)
    spark, plain = facts.pair(f"{size} changes, the time on two executors as a part of that on one")
    return (
        f"Two executors on this machine take {spark:.2f} of the time of one, and two plain"
        f" processes {plain:.2f} of the time of one."
    )


def _day(facts: MeasuredFacts) -> str:
    name = f"one day more on {SCALE.spark_days}"
    day, full = facts.pair(name)
    rows, all_rows = facts.pair(f"{name}: rows decoded")
    return (
        f"One day more on {SCALE.spark_days} reads {100 * rows / all_rows:.1f} % of the records and"
        f" takes {100 * day / full:.1f} % of the time of the full run: {_number(day)} s of"
        f" {_number(full)} s."
    )


def _logs(facts: MeasuredFacts) -> str:
    name = f"logs of {count(SCALE.spark_logs)} records of 10 clusters to silver"
    tables, mib = facts.pair(f"{name}: bytes of tables")
    cpu, tasks = facts.pair(f"{name}: CPU of plain processes")
    spark, plain = facts.pair(f"{name}, local[2]")
    millions, days = SCALE.spark_logs / 1e6, 10 * LOG_DAYS
    return (
        f"Metadata logs: a cluster's day of {count(SCALE.spark_logs // days)} records has"
        f" {_number(mib / days)} MiB of log and {_number(tables / days)} MiB of tables. A million"
        f" records take {_number(cpu / millions)} s of CPU, {_number(plain / millions)} s in two"
        f" plain processes and {_number(spark / millions)} s on Spark, and 10 clusters of"
        f" {LOG_DAYS} days are {_number(tasks)} tasks. An idle cluster writes 12 MB a day, of"
        " which nothing but its brokers and topics is in tables."
    )


def _log_day(facts: MeasuredFacts) -> str:
    name = f"one day more on {SCALE.spark_days} of a log in one segment"
    day, full = facts.pair(name)
    made, _ = facts.pair(f"{name}: recordings")
    return (
        f"One day more on {SCALE.spark_days} of a log, all in one segment, takes"
        f" {100 * day / full:.1f} % of the time of the full run and makes {_number(made)}"
        " recordings: the new day's, and that of the day which was open."
    )


def _clusters(facts: MeasuredFacts) -> str:
    spark, plain = facts.pair(f"{count(SCALE.spark_clusters)} clusters of 50 rows")
    each = 1e3 * spark / SCALE.spark_clusters
    return (
        f"{count(SCALE.spark_clusters)} clusters of 50 rows take {_number(spark)} s on Spark and"
        f" {_number(plain)} s in one process. So a cluster costs {_number(each)} ms before its"
        " first record."
    )


def _small_files(facts: MeasuredFacts) -> str:
    spark, plain = facts.pair(f"{count(SCALE.spark_files)} files of one row on average")
    each = 1e3 * spark / SCALE.spark_files
    return (
        f"{count(SCALE.spark_files)} files of one row take {_number(spark)} s on Spark and"
        f" {_number(plain)} s in one process: {_number(each)} ms a file."
        " `rdmeta.history.compact` makes one file of a day's."
    )


def _plan(facts: MeasuredFacts) -> str:
    dry, run = facts.pair(f"a dry run of {SCALE.spark_year} days")
    mib, files = facts.pair(f"the manifest of {SCALE.spark_year} days")
    each = mib * 2**20 / files
    days = SCALE.spark_year * FLEET
    return (
        f"The driver plans a year of one cluster in {_number(dry)} s when it has seen none of its"
        f" files; the run takes {_number(run)} s. The manifest has {_number(each)} bytes for"
        f" each file: with 7 files a day, a year of {FLEET} clusters has"
        f" {_number(each * 7 * days / 2**20)} MiB."
    )


def _start(facts: MeasuredFacts) -> str:
    start, job = facts.pair("the start of a session")
    return f"A session starts in {_number(start)} s. Its first Python job takes {_number(job)} s."


SENTENCES: tuple[Callable[[MeasuredFacts], str], ...] = (
    _speed,
    _memory,
    _executors,
    _day,
    _logs,
    _log_day,
    _clusters,
    _small_files,
    _plan,
    _start,
)


def _measured(facts: MeasuredFacts, parts: Sequence[Callable[[MeasuredFacts], str]]) -> list[str]:
    out = []
    for part in parts:
        try:
            out.append(part(facts))
        except KeyError:  # the facts have noted it
            continue
    return out


def facts_of(rows: Sequence[Row]) -> MeasuredFacts:
    """Returns the facts of which the page would use these rows, and miss others."""
    facts = MeasuredFacts(rows)
    _measured(facts, (*TABLE, *SENTENCES))
    return facts


def page(rows: Sequence[Row]) -> str:
    """Returns docs/internals/scale.md."""
    facts = facts_of([row for row in rows if row["run"] == "bench"])
    lines = [f"| {cells} |" for cells in _measured(facts, TABLE)]
    sentences = [f"- {text}" for text in _measured(facts, SENTENCES)]
    out = [HEAD, "## A day of the fleet", ""]
    out += [f"| what | {CLUSTER_DAYS} cluster days of 1 million records | the fleet's day |"]
    out += ["|---|---:|---:|", *lines, ""]
    out += ["## How it behaves", "", *sentences, "", WHY, LIMITS, "## The runs", ""]
    out += ["| row of [performance.md](performance.md) | commit | day | machine |"]
    out += ["|---|---|---|---|"]
    for name, row in facts.used.items():
        day = str(row["measured_at"])[:10]
        out.append(f"| {name} | {commit_of(row)} | {day} | {row['machine']} |")
    if facts.missing:
        out += ["", "Not measured yet, so left out above:", ""]
        out += [f"- {name}" for name in facts.missing]
    return "\n".join(out) + "\n"
