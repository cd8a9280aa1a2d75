"""Times metadata logs to silver: Spark beside plain processes, one process beside Kafka's tool."""

from __future__ import annotations

import json
import multiprocessing
import resource
import subprocess
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from real_kafka import missing

from bench.build import c_benches
from bench.log.dump import MOST_ROUNDS, seconds_of, words_of_kafka
from bench.spark import sessions
from bench.spark.histories import timed
from bench.spark.log_files import bytes_before_last_day, write_logs
from rdmeta import pipeline
from rdmeta.pipeline import attempting
from rdmeta.pipeline.work import AnyTask, LogTask

CLUSTERS, DAYS = 10, 10


def measure(changes: int, days: int, rounds: int) -> dict[str, Any]:
    """Returns seconds: spark, plain of ten logs; one, kafka, recordings and core of a tenth.

    Also day and full, of so many days in one segment; the recordings that both made as day_made
    and full_made; and MiB of a worker at both sizes, as worker_10 and worker_1.
    """
    c_benches()
    small, out = max(changes // CLUSTERS, 1_000), dict[str, Any]()
    with TemporaryDirectory() as folder:
        _to_silver(Path(folder, "many"), small, rounds, out)
        _one_log(Path(folder, "one"), small, rounds, out)
        _one_day_more(Path(folder, "day"), small, days, out)
        for name, times in (("worker_1", 1), ("worker_10", 10)):
            source = Path(folder, name)
            write_logs(source, times * small // 10, times)
            out[name] = [_peak_mib(source, Path(folder, f"{name}-out"))]
    return out


def _to_silver(source: Path, records: int, rounds: int, out: dict[str, Any]) -> None:
    segments = write_logs(source, records, DAYS, CLUSTERS)
    out["bytes"] = [sum(each.stat().st_size for each in segments) / 2**20]
    with sessions.local("local[2]") as session:
        sessions.first_job(session)
        for _ in range(rounds):
            spark = timed(source, engine=lambda: sessions.engine(session))[0]
            out.setdefault("spark", []).append(spark)
            before = sessions.cpu_seconds()
            seconds, made = timed(source, workers=2)
            out.setdefault("plain", []).append(seconds)
            out.setdefault("cpu", []).append(sessions.cpu_seconds() - before)
            out["tasks"] = [float(len(made.plan.tasks) + CLUSTERS)]
            tables = [each.bytes for name, each in made.files.items() if "silver/" in name]
            out["tables"] = [sum(tables) / 2**20]


def _one_log(source: Path, records: int, rounds: int, out: dict[str, Any]) -> None:
    """Times one log in one process, the task that makes its recordings, and others beside it."""
    (segment,) = write_logs(source, records, DAYS)
    spent: list[float] = []
    attempt = attempting.attempt

    def measured(task: AnyTask) -> Any:
        begin = process_time()
        result = attempt(task)
        if isinstance(task, LogTask):
            spent.append(process_time() - begin)
        return result

    attempting.attempt = measured
    try:
        for _ in range(rounds):
            out.setdefault("one", []).append(timed(source, workers=1)[0])
    finally:
        attempting.attempt = attempt
    out["recordings"] = spent
    out["core"] = [_core_seconds(records) for _ in range(rounds)]
    if reason := missing("4.3.0"):
        out["missing"] = {"kafka": reason}
        return
    for _ in range(min(rounds, MOST_ROUNDS)):
        out.setdefault("kafka", []).append(seconds_of(words_of_kafka(segment), str(source)))


def _core_seconds(records: int) -> float:
    """Returns the time of C for the replay of as many records, which decodes them."""
    words = [str(c_benches() / "metadata_log"), "1000", str(records), "1", "1"]
    printed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    nanoseconds: float = json.loads(printed)["replay"][0]
    return nanoseconds * records / 1e9


def _one_day_more(source: Path, records: int, days: int, out: dict[str, Any]) -> None:
    (segment,) = write_logs(source, records, days + 1)
    data, before = segment.read_bytes(), bytes_before_last_day(segment)
    tables = source.parent / "tables-of-days"
    for way, size in (("full", before), ("day", len(data))):
        segment.write_bytes(data[:size])
        begin = perf_counter()
        made = pipeline.run(pipeline.plan([source], tables), workers=2)
        out[way] = [perf_counter() - begin]
        out[f"{way}_made"] = [float(sum("/day=" in each.name for each in made.made))]


def _peak_mib(source: Path, tables: Path) -> float:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_peak_of_run, source, tables).result()


def _peak_of_run(source: Path, tables: Path) -> float:
    pipeline.run(pipeline.plan([source], tables), workers=1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
