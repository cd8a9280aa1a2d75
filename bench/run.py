"""Runs every figure in one go, prints a table, and merges it into bench/results.json.

performance.py writes docs/internals/performance.md and the README's figures from that file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import build, machine, performance, results, startup
from bench.figure import Missing
from bench.figures import QUICK, Figure, Job, Run, Scale, all_figures
from bench.figures_spark import spark_figures
from bench.results import Row, digits

LIMIT_SECONDS = 900  # of one process, except churn and Spark
SPARK_SECONDS = 4 * 3600
AGAIN = 2  # how often a missed figure is measured again
LONG_SECONDS = 20  # a job that takes longer is measured again once only


class MeasureError(Exception):
    """A bench failed; the message is its output."""


def run_once(job: Job, turn: int) -> Run:
    """Runs one process of a job; returns the object that it printed."""
    arguments = [argument.replace("{seed}", str(1 + turn)) for argument in job.arguments]
    if job.program == "startup":
        try:
            return {**startup.measure(int(arguments[0]))}
        except subprocess.CalledProcessError as error:
            raise MeasureError(str(error)) from error
    command = [str(build.OUT / job.program), *arguments]
    if job.program in ("leader", "live", "client", "cli", "fold", "log", "report", "spark"):
        command = [sys.executable, "-m", f"bench.{job.program}", *arguments]
    limit = SPARK_SECONDS if job.program == "spark" else LIMIT_SECONDS
    limit += int(arguments[1]) if job.program == "churn" else 0
    try:
        done = subprocess.run(
            command, cwd=build.ROOT, capture_output=True, text=True, timeout=limit
        )
    except subprocess.TimeoutExpired as error:
        raise MeasureError(f"{' '.join(command)}: not done after {limit} s") from error
    if done.returncode:
        raise MeasureError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    try:
        run: Run = json.loads(done.stdout)
    except ValueError as error:
        raise MeasureError(f"{' '.join(command)}: {error}") from error
    return run


def run_jobs(
    figures: Sequence[Figure], console: Console, time: int = 0
) -> tuple[dict[Job, list[Run]], list[str]]:
    """Runs every job that the figures need, by turns, so that no job has all the luck.

    Returns the results of the jobs that did not fail, and the errors of those that did. `time` is
    how often they ran before: each time has seeds of its own.
    """
    jobs = list(dict.fromkeys(figure.job for figure in figures))
    turns = [(turn, job) for turn in range(max(job.runs for job in jobs)) for job in jobs]
    turns = [(turn, job) for turn, job in turns if turn < job.runs]
    out: dict[Job, list[Run]] = {job: [] for job in jobs}
    failed: list[str] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=len(turns))
        for turn, job in turns:
            progress.update(task, description=f"{job.program} {job.arguments[0]}")
            if job in out:
                begin = monotonic()
                try:
                    run = run_once(job, turn + time * job.runs)
                    run["seconds"] = monotonic() - begin
                    out[job].append(run)
                except MeasureError as error:
                    failed.append(str(error))
                    del out[job]
            progress.advance(task)
    return out, failed


def again(
    figures: Sequence[Figure],
    rows: dict[str, Row],
    runs: Mapping[Job, Sequence[Run]],
    scale: Scale,
    console: Console,
    most: int = AGAIN,
) -> None:
    """Measures missed figures again, `most` times at most, and replaces their rows.

    A busy machine may have spoilt the first time. Now only their jobs run, and each job times the
    figure and its floor by turns. The last time counts. `runs` are those of the first time: a job
    that took longer than LONG_SECONDS then is measured again once.
    """
    long = {job for job, of in runs.items() if sum(run["seconds"] for run in of) > LONG_SECONDS}
    for time in range(1, 1 + most):
        missed = [f for f in figures if f.name in rows and rows[f.name]["ok"] is False]
        missed = [f for f in missed if time == 1 or f.job not in long]
        if not missed:
            return
        for figure in missed:
            console.print(f"missed, measured again: {figure.name}", highlight=False, markup=False)
        redone, _ = run_jobs(missed, console, time)
        found, _ = judged([f for f in missed if f.job in redone], redone, scale)
        rows.update({name: {**row, "times": 1 + time} for name, row in found.items()})


def judged(
    figures: Sequence[Figure], runs: Mapping[Job, Sequence[Run]], scale: Scale
) -> tuple[dict[str, Row], dict[str, str]]:
    """Returns the rows of the figures, and the reasons of those that are missing, by name."""
    rows: dict[str, Row] = {}
    missing: dict[str, str] = {}
    for figure in figures:
        try:
            rows[figure.name] = figure.result(runs[figure.job], scale.judged)
        except Missing as reason:
            missing[figure.name] = str(reason)
    return rows, missing


def table(rows: Sequence[Row]) -> Table:
    """Returns the table for a terminal: medians, and the best beside them."""
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    out.add_column("figure", overflow="fold")
    for column in ("median", "best", "worst"):
        out.add_column(column, justify="right", no_wrap=True)
    out.add_column("unit", no_wrap=True)
    out.add_column("reference", overflow="fold")
    for column in ("median", "ratio"):
        out.add_column(column, justify="right", no_wrap=True)
    out.add_column("goal", no_wrap=True)
    out.add_column("", no_wrap=True)
    marks = {True: "[green]ok[/]", False: "[red]missed[/]", None: ""}
    for row in rows:
        ok = row["ok"]
        out.add_row(
            str(row["name"]),
            *(digits(row[key]) for key in ("value", "best", "worst")),
            str(row["unit"]),
            str(row["reference_name"]),
            digits(row["reference"]),
            digits(row["ratio"]),
            str(row["rule"] or "").removesuffix(f" {row['unit']}"),
            marks[ok if isinstance(ok, bool) else None],
        )
    return out


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="tiny sizes, into build/bench/quick: shows that it runs, measures nothing",
    )
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        help="a group (lookup, apply, first, memory, python, import, handle, bulk, threads, image,"
        " waits, arrow, client, security, cli, fold, log, report, churn) or a part of a row's name;"
        " may be repeated",
    )
    parser.add_argument(
        "--spark",
        action="store_true",
        help="the pipeline on Spark instead of all else; --only takes parts of its rows' names",
    )
    parser.add_argument("--rounds", type=int, help="rounds per process")
    parser.add_argument(
        "--again", type=int, default=AGAIN, help="how often a missed figure is measured again"
    )
    parser.add_argument("--processes", type=int, help="processes per job")
    parser.add_argument(
        "--churn-minutes", type=float, help="how long memory is churned, such as 60 for an hour"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="results are merged into it")
    args = parser.parse_args(argv)
    args.json = args.json or (
        build.OUT / "quick" / "results.json" if args.quick else results.RESULTS
    )
    return args


def known(scale: Scale, old: Sequence[results.Row]) -> list[str]:
    """Returns the names of all figures: of this run, of a full run, and of any churn so far."""
    figures = [f for of in (all_figures, spark_figures) for s in (scale, Scale()) for f in of(s)]
    churned = [row["name"] for row in old if row.get("group") == "churn"]
    return list(dict.fromkeys([*(figure.name for figure in figures), *churned]))


def unmeasured(path: Path, names: Collection[str]) -> dict[str, str]:
    """Returns the reasons of earlier runs for these figures: this run has not tried them."""
    if not path.exists():
        return {}
    earlier = json.loads(path.read_text(encoding="utf-8")).get("missing", {})
    return {name: reason for name, reason in earlier.items() if name in names}


def select(figures: Sequence[Figure], only: Sequence[str] | None) -> list[Figure]:
    """Returns the figures of the groups in `only`, and those with another of `only` in their name.

    Returns all if it is None.
    """
    groups = {figure.group for figure in figures}
    return [
        figure
        for figure in figures
        if only is None or any(o == figure.group if o in groups else o in figure.name for o in only)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0 if all was measured, goals met or not; 2 if not all could be measured."""
    args = arguments(argv)
    console = Console() if sys.stdout.isatty() else Console(width=140)
    scale = QUICK if args.quick else Scale()
    if args.rounds is not None:
        rounds = max(1, args.rounds)
        scale = replace(scale, rounds=rounds, spark_rounds=rounds)
    if args.processes is not None:
        scale = replace(scale, processes=max(1, args.processes))
    if args.churn_minutes is not None:
        scale = replace(scale, churn_seconds=max(1, round(60 * args.churn_minutes)))
    figures = select(spark_figures(scale) if args.spark else all_figures(scale), args.only)
    if not figures:
        console.print("no figure has that group or name", style="red", markup=False)
        return 2
    host = machine.describe()
    try:
        if not args.spark:
            console.print("building the benches", highlight=False)
            build.c_benches()
    except build.BuildError as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        return 2
    runs, failed = run_jobs(figures, console)
    for reason in failed:
        console.print(f"not measured: {reason}", style="red", markup=False, highlight=False)
    found, missing = judged([figure for figure in figures if figure.job in runs], runs, scale)
    for name, reason in missing.items():
        console.print(f"missing: {name}: {reason}", style="yellow", markup=False, highlight=False)
    if failed and not found:
        return 2
    found = {name: {**row, "times": 1} for name, row in found.items()}
    again(figures, found, runs, scale, console, args.again)
    rows = list(found.values())
    args.json.parent.mkdir(parents=True, exist_ok=True)
    names = known(scale, results.load(args.json))
    results.write(args.json, results.signed(rows, "bench", host), "bench", names)
    beside = args.json.with_suffix(".machine.json")
    tried = {figure.name for figure in figures}
    host["missing"] = {**unmeasured(beside, set(names) - tried), **missing}
    beside.write_text(json.dumps(host, indent=1) + "\n", encoding="utf-8")
    if args.json == results.RESULTS:
        performance.write()
    console.print(table(rows))
    busiest = max(run.get("off_cpu", 0.0) for job in runs.values() for run in job)
    if busiest > 0.1:
        console.print(
            f"The machine was busy: up to {busiest:.0%} of a process's time went to others, and"
            " their traffic in caches and memory is in these figures.",
            style="yellow",
        )
    for key, value in host.items():
        if key != "missing":  # these are printed above
            console.print(f"{key}: {value}", highlight=False, markup=False)
    console.print(f"written: {args.json}, {beside}", highlight=False, markup=False)
    return 2 if failed else 0
