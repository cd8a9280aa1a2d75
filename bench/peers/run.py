"""Measures every peer in one run, and writes results.json.

bench/performance.py writes docs/internals/performance.md from results.json.

Every turn starts one process per peer and size, in another order each time. So a slow moment of
the machine does not hit one peer alone. All of them get the files of the same workload.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import build, machine, performance, results
from bench.peers import figures
from bench.peers.figures import QUICK, PeerScale, Run
from bench.peers.peers import PEERS, Limits, Peer, PeerMissing
from bench.results import digits

WORKER_SECONDS = 600
SEED = 1


class PeerError(Exception):
    """No comparison is possible; the message is why."""


@dataclass
class RunState:
    """The state of a run."""

    versions: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    runs: dict[tuple[str, int], list[Run]] = field(default_factory=dict)

    def off_cpu(self, peer: str) -> float:
        """Returns the part of its time that a peer's worker did not run, at most, at any size."""
        of = [run for (name, _), runs in self.runs.items() if name == peer for run in runs]
        return max((float(run.get("off_cpu", 0)) for run in of), default=0.0)

    def drop(self, peer: Peer, reason: str) -> None:
        """Goes on without a peer. Raises MeasureError if it is rdmeta."""
        if peer.name.startswith("rdmeta"):
            raise PeerError(f"{peer.name}: {reason}")
        self.missing[peer.name] = reason
        self.versions.pop(peer.name, None)
        for key in [key for key in self.runs if key[0] == peer.name]:
            del self.runs[key]


def prepare(peers: Sequence[Peer], install: bool, state: RunState, console: Console) -> None:
    """Prepares every peer. Keeps the versions, and the reasons of the missing ones."""
    for peer in peers:
        console.print(f"preparing {peer.name}", highlight=False)
        try:
            state.versions[peer.name] = peer.prepare(install)
        except PeerMissing as reason:
            state.drop(peer, str(reason))


def workload(topics: int, queries: int) -> Path:
    """Makes the files that all workers read: bench/c/workload.h."""
    directory = build.OUT / "workload" / f"{topics}-{queries}"
    directory.mkdir(parents=True, exist_ok=True)
    program = str(build.OUT / "write_workload")
    command = [program, str(directory), str(topics), str(queries), str(SEED)]
    subprocess.run(command, check=True, timeout=WORKER_SECONDS)
    return directory


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """Starts a server of the workload's frames; yields its address."""
    command = [sys.executable, "-m", "bench.peers.server", str(directory)]
    with subprocess.Popen(
        command, cwd=build.ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            raise PeerError("the server of canned frames did not start")
        yield f"127.0.0.1:{port}"
        # Leaving closes its input, which ends it.


def work(peer: Peer, topics: int, directory: Path, limits: Limits, bootstrap: str) -> Run:
    """Runs the processes of one peer in one turn; returns their objects as one."""
    out: Run = {}
    for mode in peer.modes:
        command = peer.command(mode, directory, limits, bootstrap)
        try:
            done = subprocess.run(
                command, cwd=build.ROOT, capture_output=True, text=True, timeout=WORKER_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PeerMissing(f"stopped at {topics} topics: {error}") from error
        if done.returncode:
            words = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise PeerMissing(f"stopped at {topics} topics: {words[-1][:300]}")
        try:
            out |= json.loads(done.stdout)
        except ValueError as error:
            raise PeerMissing(f"stopped at {topics} topics: {error}") from error
    if "sum" not in out:
        raise PeerMissing(f"its output has no sum of the leaders it found, of {topics} topics")
    return out


def measure(peers: Sequence[Peer], scale: PeerScale, state: RunState, console: Console) -> None:
    """Runs all turns. A peer that fails is out, with its reason, and so is one that finds other
    leaders than rdmeta."""
    limits = Limits(scale.rounds, scale.seconds, scale.warm)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with ExitStack() as stack:
        places = {topics: workload(topics, scale.queries) for topics in scale.sizes}
        servers = {topics: stack.enter_context(served(path)) for topics, path in places.items()}
        progress = stack.enter_context(Progress(*columns, console=console, transient=True))
        task = progress.add_task("", total=scale.turns * len(scale.sizes) * len(peers))
        for turn in range(scale.turns):
            order = [*peers[turn % len(peers) :], *peers[: turn % len(peers)]]
            for topics, peer in ((topics, peer) for topics in scale.sizes for peer in order):
                progress.update(task, description=f"{peer.name}, {topics} topics")
                if peer.name in state.versions:
                    try:
                        run = work(peer, topics, places[topics], limits, servers[topics])
                        state.runs.setdefault((peer.name, topics), []).append(run)
                    except PeerMissing as reason:
                        state.drop(peer, str(reason))
                progress.advance(task)
    for topics in scale.sizes:
        ours = state.runs["rdmeta", topics][0]["sum"]
        for peer in peers:
            sums = {run["sum"] for run in state.runs.get((peer.name, topics), ())}
            if sums - {ours}:
                state.drop(peer, f"found other leaders of {topics} topics: {sums} and {ours}")


def table(rows: Sequence[results.Row]) -> Table:
    """Returns the table for a terminal."""
    out = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("figure", "", "version"):
        out.add_column(column, overflow="fold")
    for column in ("median", "best", "worst"):
        out.add_column(column, justify="right", no_wrap=True)
    out.add_column("unit", no_wrap=True)
    out.add_column("x ours", justify="right", no_wrap=True)
    last = None
    for row in rows:
        out.add_row(
            "" if row["figure"] == last else row["figure"],
            f"[bold]{row['label']}[/]" if row["ours"] else row["label"],
            row["version"],
            *(digits(row[key]) for key in ("value", "best", "worst")),
            row["unit"],
            digits(row["ratio"]),
        )
        last = row["figure"]
    return out


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="tiny sizes, into build/bench/peers: shows that it runs, measures nothing",
    )
    parser.add_argument(
        "--only",
        metavar="PEER",
        action="append",
        choices=[peer.name for peer in PEERS],
        help="rdmeta and this peer, into build/bench/peers; may be repeated",
    )
    parser.add_argument("--no-install", action="store_true", help="only what is installed")
    parser.add_argument("--turns", type=int, help="processes per peer and size")
    parser.add_argument("--json", type=Path, metavar="PATH", help="results are merged into it")
    parser.add_argument("--again", action="store_true", help="writes the last run's tables")
    args = parser.parse_args(argv)
    # A published result is one whole run: a part of one does not replace it.
    part, aside = bool(args.quick or args.only), build.OUT / "peers"
    if part:
        aside.mkdir(parents=True, exist_ok=True)
    args.json = args.json or (aside / "results.json" if part else results.RESULTS)
    return args


def publish(args: argparse.Namespace, console: Console) -> None:
    """Writes the tables from the files of the last run."""
    about: dict[str, Any] = json.loads(about_file(args.json).read_text(encoding="utf-8"))
    rows = [
        row
        for row in results.load(args.json)
        if row.get("run") == "peers" and row["measured_at"] == about["machine"]["measured_at"]
    ]
    if args.json == results.RESULTS:
        performance.write()
    console.print(table(rows))
    for name, reason in about["missing"].items():
        console.print(f"missing: {name}: {reason}", style="yellow", markup=False)
    if about["off_cpu"] > 0.1:
        busy = f"The machine was busy: {about['off_cpu']:.0%} of a process's time went to others."
        console.print(busy, style="yellow", highlight=False)


def about_file(path: Path) -> Path:
    """Returns the file beside the results that has machine, versions and missing peers."""
    return path.with_suffix(".peers.json")


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 0 if it measured, 2 if it could not."""
    args = arguments(argv)
    console = Console() if sys.stdout.isatty() else Console(width=150)
    if args.again:
        if not about_file(args.json).exists():
            console.print(f"no run so far: no {about_file(args.json)}", soft_wrap=True)
            return 2
        publish(args, console)
        return 0
    scale = QUICK if args.quick else PeerScale(turns=max(1, args.turns or PeerScale.turns))
    peers = [
        peer
        for peer in PEERS
        if not args.only or peer.name.startswith("rdmeta") or peer.name in args.only
    ]
    host, state = machine.describe(), RunState()
    try:
        prepare(peers, not args.no_install, state, console)
        measure(peers, scale, state, console)
    except (build.BuildError, PeerError, PeerMissing) as error:
        console.print(str(error), style="red", markup=False, highlight=False)
        return 2
    rows = figures.rows(scale, state.runs, state.versions)
    results.write(args.json, results.signed(rows, "peers", host), "peers", figures.known(scale))
    runtimes = {
        name: runs[0]["runtime"] for (name, _), runs in state.runs.items() if "runtime" in runs[0]
    }
    about = {
        "machine": host,
        "versions": state.versions,
        "runtimes": runtimes,
        "missing": state.missing,
        "off_cpu": round(state.off_cpu("rdmeta"), 3),
    }
    about_file(args.json).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    publish(args, console)
    console.print(f"written: {args.json}", highlight=False, markup=False)
    return 0
