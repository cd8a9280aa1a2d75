"""A figure: a value and a reference from one process, and the value's limit.

A *job* is one process. It is run as often as asked, and its samples are pooled. A *figure* reads
its samples and those of its reference from one job, so the two were measured side by side.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

PER_TOPIC = 10  # partitions per topic, in every response

Run = dict[str, Any]
Runs = Sequence[Run]
Samples = Callable[[Runs], list[float]]

ANY = "*"  # in a run's "missing": the reason for every series that it lacks


class Missing(Exception):
    """A job could not measure a series here; the message is the reason.

    A job says so in the object that it prints: `"missing": {series or ANY: reason}`.
    """


@dataclass(frozen=True)
class Job:
    """A process: the program's name and arguments, and how many times it is run.

    `{seed}` in an argument becomes another number in each run.
    """

    program: str
    arguments: tuple[str, ...]
    runs: int = 1


def ratio_of(values: Sequence[float], references: Sequence[float]) -> float | None:
    """Returns the median of the ratios of the pairs, or the ratio of the medians without pairs.

    None if the reference is 0: it may be a difference of two amounts.
    """
    pairs = list(zip(values, references, strict=False))
    if len(values) != len(references):
        pairs = [(statistics.median(values), statistics.median(references))]
    ratios = [value / reference for value, reference in pairs if reference > 0]
    return statistics.median(ratios) if ratios else None


@dataclass(frozen=True)
class Goal:
    """`value <= factor * reference + plus`, or `value <= enough`, in the unit of the value.

    A time is judged by the floor that was timed beside it, never alone: it is one machine's time.
    Bytes are the same everywhere, so memory may have a goal without a factor.
    """

    factor: float = 0.0
    plus: float = 0.0
    enough: float = 0.0

    def limit(self, reference: float) -> float:
        """Returns the most that the value may be."""
        return max(self.factor * reference + self.plus, self.enough)

    def met(self, values: Sequence[float], references: Sequence[float]) -> bool:
        """Returns whether half of the rounds are within the limit of their own reference."""
        pairs = list(zip(values, references, strict=False))
        if len(values) != len(references):
            pairs = [(statistics.median(values), statistics.median(references))]
        if self.factor:  # a reference may be a difference of two amounts
            pairs = [pair for pair in pairs if pair[1] > 0]
        over = [value - self.limit(reference) for value, reference in pairs]
        return bool(over) and statistics.median(over) <= 0

    def text(self, unit: str) -> str:
        """Returns the goal as a reader would write it."""
        if not self.factor:
            return f"<= {self.plus:g} {unit}"
        times = "" if self.factor == 1 else f"{self.factor:g} x "
        part = ""
        if self.factor < 0.5:
            times, part = "", f" / {1 / self.factor:g}"
        plus = f" + {self.plus:g} {unit}" if self.plus else ""
        enough = f" or {self.enough:g} {unit}" if self.enough else ""
        return f"<= {times}reference{part}{plus}{enough}"


@dataclass(frozen=True)
class Figure:
    """One row: samples of `value` and `reference` in `unit`, in pairs if both are timed."""

    group: str
    name: str
    unit: str
    job: Job
    value: Samples
    reference: Samples
    reference_name: str
    goal: Goal | None = None
    # Why the goal may be missed; the page says so beside a goal that is.
    why: str = ""

    def result(self, runs: Runs, judged: bool) -> dict[str, object]:
        """Returns the row of results.json: medians, with the best and the spread beside them.

        The ratio is the median of each round's own ratio. So a slow moment of the machine, which
        hits both, cancels out. A goal is judged in the same way.
        """
        values, references = self.value(runs), self.reference(runs)
        value, reference = statistics.median(values), statistics.median(references)
        ratio = ratio_of(values, references)
        limit = None if self.goal is None else self.goal.limit(reference)
        ok = self.goal.met(values, references) if judged and self.goal is not None else None
        return {
            "name": self.name,
            "unit": self.unit,
            "value": round(value, 3),
            "reference": round(reference, 3),
            "ratio": None if ratio is None else round(ratio, 3),
            "goal": None if limit is None else round(limit, 3),
            "ok": ok,
            "rule": None if self.goal is None else self.goal.text(self.unit),
            "reference_name": self.reference_name,
            "best": round(min(values), 3),
            "worst": round(max(values), 3),
            "best_reference": round(min(references), 3),
            "samples": len(values),
            "off_cpu": round(statistics.median(run.get("off_cpu", 0.0) for run in runs), 3),
            "group": self.group,
            "why": self.why,
        }


@dataclass(frozen=True)
class Scale:
    """How much is measured: topics of each size, rounds per process, processes."""

    lookups: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000)
    fills: tuple[int, ...] = (10_000, 100_000)
    python: int = 10_000
    listed: int = 3_000
    queries: int = 1 << 20
    python_queries: int = 200_000
    bulk: int = 100_000
    churn: int = 100_000
    churn_seconds: int = 20
    clients: int = 1_000
    changes: int = 1_000_000
    log_partitions: tuple[int, ...] = (100_000, 1_000_000)
    log_records: int = 10_000_000
    spark_sizes: tuple[int, ...] = (1_000_000, 10_000_000, 100_000_000)
    spark_changes: int = 10_000_000
    spark_days: int = 100
    spark_logs: int = 10_000_000
    spark_clusters: int = 1_000
    spark_files: int = 100_000
    spark_year: int = 365
    spark_keys: int = 2_000_000
    spark_partitions: int = 100_000
    spark_month: int = 20_000_000
    spark_commit: int = 1_000
    spark_rounds: int = 2
    report_fleet: tuple[int, int] = (20, 30)  # clusters and days
    generated_days: int = 7
    kills: int = 30  # rounds with Apache Kafka; 0: none is started
    idle_seconds: float = 12
    rounds: int = 9
    processes: int = 3
    judged: bool = True


QUICK = Scale(
    lookups=(10, 100),
    fills=(10, 100),
    python=100,
    listed=100,
    queries=1 << 12,
    python_queries=20_000,
    bulk=100,
    churn=100,
    churn_seconds=1,
    clients=10,
    changes=2_000,
    log_partitions=(100, 200),
    log_records=2_000,
    spark_sizes=(1_000, 2_000),
    spark_changes=2_000,
    spark_days=3,
    spark_logs=2_000,
    spark_clusters=3,
    spark_files=5,
    spark_year=3,
    spark_keys=20_000,
    spark_partitions=1_000,
    spark_month=2_000,
    spark_commit=20,
    spark_rounds=1,
    report_fleet=(2, 7),
    generated_days=1,
    kills=0,
    idle_seconds=0.2,
    rounds=2,
    processes=1,
    judged=False,
)


def count(number: int) -> str:
    """Writes 1 000 as "1 k", 1 000 000 as "1 M"."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number >= size and number % size == 0:
            return f"{number // size} {unit}"
    return str(number)


def found(run: Run, key: str) -> Any:
    """Returns what a run has under `key`; raises Missing with the reason if the run has one."""
    missing = run.get("missing") or {}
    reason = missing.get(key) or (None if key in run else missing.get(ANY))
    if reason:
        raise Missing(reason)
    return run[key]


def series(key: str) -> Samples:
    """Returns the samples called `key`, of all runs; they raise Missing."""
    return lambda runs: [float(sample) for run in runs for sample in found(run, key)]


def beside(
    group: str,
    name: str,
    unit: str,
    job: Job,
    keys: tuple[str, str],
    reference: str,
    goal: Goal | None = None,
    why: str = "",
) -> Figure:
    """Returns the figure of two series of one job, which `keys` names: the value, the reference."""
    value, other = map(series, keys)
    return Figure(group, name, unit, job, value, other, reference, goal, why)


def number(key: str, per: str | int = 1) -> Samples:
    """Returns the number called `key` divided by another one, one sample per run."""
    return lambda runs: [
        float(run[key]) / float(run[per] if isinstance(per, str) else per) for run in runs
    ]
