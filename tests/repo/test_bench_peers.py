"""The peers' bench runs, compares equal work and keeps results. The tests check no speeds."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import rdmeta
from bench import build
from bench.peers import figures
from bench.peers.figures import QUICK, RANDOM, PeerScale, known, planned
from bench.peers.peers import PEERS, Java, Limits, Peer, PeerMissing, complaint, debian
from bench.peers.run import PeerError, RunState, arguments, main, served, work, workload
from bench.results import RESULTS

KEYS = {"name", "unit", "value", "reference", "ratio", "goal", "ok", "run", "machine", "version"}
MINE = {"name": "C leader lookup", "run": "bench", "value": 1.0}


@dataclass
class Quick:
    """The files of a quick run: its rows, and its facts about the peers."""

    rows: list[dict[str, Any]]
    about: dict[str, Any]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Quick:
    """Runs all peers that are installed, quickly, over results that have a row already."""
    to = tmp_path_factory.mktemp("peers")
    (to / "r.json").write_text(json.dumps([MINE]), encoding="utf-8")
    command = [sys.executable, "-m", "bench.peers", "--quick", "--no-install"]
    command += ["--json", str(to / "r.json")]
    done = subprocess.run(command, cwd=build.ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    return Quick(
        json.loads((to / "r.json").read_text(encoding="utf-8")),
        json.loads((to / "r.peers.json").read_text(encoding="utf-8")),
    )


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_quick_run_merges_its_rows_and_judges_no_goal(quick: Quick) -> None:
    assert MINE in quick.rows
    rows = [row for row in quick.rows if row["run"] == "peers"]
    names = [row["name"] for row in rows]
    assert names == [name for name in known(QUICK) if name in names]
    for row in rows:
        assert row.keys() >= KEYS
        assert row["measured_at"] == quick.about["machine"]["measured_at"]
        assert row["ok"] is None
        assert row["samples"] >= 1


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.parametrize("peer", [peer.name for peer in PEERS])
def test_every_peer_has_its_rows_or_a_reason(quick: Quick, peer: str) -> None:
    if peer in quick.about["missing"]:
        reason = quick.about["missing"][peer]
        assert reason
        pytest.skip(f"{peer}: {reason}")
    assert quick.about["versions"][peer]
    has = {row["label"] for row in quick.rows if row.get("peer") == peer}
    assert has == {line.label for _, line, _ in planned(QUICK) if line.peer == peer}


# ---------------------------------------------------------------- the figures


def runs(ours: list[list[float]], theirs: list[list[float]]) -> dict[tuple[str, int], list[Any]]:
    """Returns the turns of two peers at 1 000 topics."""
    return {
        ("rdmeta", 1_000): [{"random:cache": turn} for turn in ours],
        ("librdkafka", 1_000): [{"random:librdkafka": turn} for turn in theirs],
    }


LIBRDKAFKA = next(line for line in RANDOM.lines if line.peer == "librdkafka")


def test_a_ratio_is_the_median_of_the_turns_ratios_and_has_no_goal() -> None:
    # The second turn was slow for both peers.
    found = runs([[10, 10], [100, 100], [10, 10]], [[120, 121], [1200, 1210], [120, 121]])
    row = figures.row(RANDOM, LIBRDKAFKA, 1_000, found)
    assert row is not None
    assert row["ratio"] == 12.05
    assert (row["goal"], row["rule"], row["ok"]) == (None, None, None)


def test_a_time_of_zero_gives_no_ratio() -> None:
    row = figures.row(RANDOM, LIBRDKAFKA, 1_000, runs([[0.0]], [[1.0]]))
    assert row is not None
    assert row["ratio"] is None


def test_a_figure_without_turns_gives_no_row() -> None:
    assert figures.row(RANDOM, LIBRDKAFKA, 1_000, {}) is None


def test_names_of_rows_are_distinct() -> None:
    names = known(PeerScale())
    assert len(set(names)) == len(names)


# ------------------------------------------------------------------ the run


class Broken(Peer):
    """A peer whose worker fails with a message."""

    name = "broken"
    modes = ("speed",)

    def command(self, mode: str, work: Path, limits: Limits, bootstrap: str) -> list[str]:
        return [sys.executable, "-c", "raise SystemExit('out of luck')"]


def test_a_worker_that_fails_makes_its_peer_missing_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(PeerMissing, match="stopped at 10 topics: out of luck"):
        work(Broken(), 10, tmp_path, Limits(1, 1, 0), "")


@pytest.mark.parametrize(
    ("output", "why"), [("no JSON", "stopped at 10 topics"), ("{}", "no sum of the leaders")]
)
def test_a_worker_with_useless_output_makes_its_peer_missing(
    output: str, why: str, tmp_path: Path
) -> None:
    class Odd(Broken):
        def command(self, mode: str, work: Path, limits: Limits, bootstrap: str) -> list[str]:
            return [sys.executable, "-c", f"print({output!r})"]

    with pytest.raises(PeerMissing, match=why):
        work(Odd(), 10, tmp_path, Limits(1, 1, 0), "")


@pytest.mark.parametrize("part", [["--quick"], ["--only", "go"]])
def test_a_partial_run_does_not_overwrite_the_results_of_a_full_one(part: list[str]) -> None:
    whole, args = arguments([]), arguments(part)
    assert whole.json == RESULTS
    assert args.json.parent == build.OUT / "peers"
    assert arguments([*part, "--json", "here"]).json == Path("here")


def test_the_option_again_without_a_last_run_is_an_error_that_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--again", "--json", str(tmp_path / "results.json")]) == 2
    assert str(tmp_path / "results.peers.json") in capsys.readouterr().out


def test_a_dropped_peer_loses_its_samples_and_without_rdmeta_the_run_ends() -> None:
    state = RunState({"broken": "1", "go": "1"}, {}, {("broken", 10): [{}], ("go", 10): [{}]})
    state.drop(Broken(), "out of luck")
    assert state.missing == {"broken": "out of luck"}
    assert state.versions == {"go": "1"}
    assert state.runs == {("go", 10): [{}]}
    with pytest.raises(PeerError, match="rdmeta: no compiler"):
        state.drop(PEERS[0], "no compiler")


def test_the_share_off_cpu_is_that_of_the_worst_size() -> None:
    runs: dict[tuple[str, int], list[Any]]
    runs = {("rdmeta", 10): [{"off_cpu": 0.5}, {}], ("rdmeta", 100): [{}], ("go", 10): [{}]}
    assert RunState(runs=runs).off_cpu("rdmeta") == 0.5
    assert RunState(runs=runs).off_cpu("go") == 0.0


def test_a_reason_is_the_line_with_the_error_without_colours_and_addresses() -> None:
    output = "\x1b[1mhello\x1b[m\n[\x1b[31mERROR\x1b[m] no https://registry.example/x here\n"
    assert complaint(output) == "[ERROR] no <address> here"
    assert complaint("only this") == "only this"
    assert complaint("") == ""


def test_without_install_a_missing_package_is_not_installed() -> None:
    with pytest.raises(PeerMissing, match="librdkafka-dev"):
        debian(False, "librdkafka-dev")


def java_built_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mvn: str) -> Java:
    """Returns a Java peer whose classes are compiled, and replaces Maven by a script."""
    tmp_path.mkdir(exist_ok=True)
    for name, script in (("javac", "exit 1"), ("mvn", mvn)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    java = Java()
    java.out = tmp_path / "java"
    (java.out / "classes").mkdir(parents=True)
    (java.out / "classes/Peer.class").touch()
    return java


def test_a_compiled_java_peer_without_a_client_is_missing_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = java_built_by(tmp_path, monkeypatch, "echo '[ERROR] no network'; exit 1")
    with pytest.raises(PeerMissing, match="mvn compile: .*no network"):
        java.prepare(install=True)
    java = java_built_by(tmp_path / "idle", monkeypatch, "exit 0")
    with pytest.raises(PeerMissing, match=r"no kafka-clients\.jar"):
        java.prepare(install=True)


def test_a_new_client_replaces_the_client_of_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars = tmp_path / "java/jars"
    java = java_built_by(
        tmp_path, monkeypatch, f"mkdir -p {jars} && touch {jars}/kafka-clients-4.3.0.jar"
    )
    jars.mkdir()
    (jars / "kafka-clients-4.2.0.jar").touch()
    os.utime(java.out / "classes/Peer.class", (1, 1))  # older than the sources
    assert java.prepare(install=True) == "4.3.0"
    assert [path.name for path in jars.iterdir()] == ["kafka-clients-4.3.0.jar"]


# ------------------------------------------------------- the same work for all


@pytest.fixture(scope="module")
def files() -> Path:
    """Returns the files of a workload of 40 topics."""
    build.c_benches()
    return workload(40, 64)


def facts(body: bytes, version: int) -> list[Any]:
    """Returns the facts of a response that every version contains."""
    return [
        (topic["name"], [(p["partition"], p["leader"], p["replicas"]) for p in topic["partitions"]])
        for topic in rdmeta.decode_metadata_response(body, version)["topics"]
    ]


@pytest.mark.parametrize("version", [4, 5])
def test_older_responses_of_a_workload_contain_the_same_facts(files: Path, version: int) -> None:
    for which, topics in (("all", 40), ("one", 1)):
        new = facts((files / f"{which}-12").read_bytes(), 12)
        assert len(new) == topics
        assert facts((files / f"{which}-{version}").read_bytes(), version) == new


def test_hot_queries_have_eight_topics_per_set(files: Path) -> None:
    numbers = struct.unpack("<32768I", (files / "hot").read_bytes())
    for start in range(0, len(numbers), 2048):
        assert len(set(numbers[start : start + 2048 : 2])) <= 8
    assert len(set(numbers[0::2])) > 8


@pytest.fixture
def broker(files: Path) -> Iterator[socket.socket]:
    """Yields a connection to a server of the workload's frames."""
    with served(files) as address:
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            yield connection


def ask(connection: socket.socket, key: int, version: int, tail: bytes) -> bytes:
    """Sends a request; returns its answer without length and correlation id."""
    request = struct.pack(">hhih", key, version, 7, -1) + tail
    connection.sendall(struct.pack(">i", len(request)) + request)
    with connection.makefile("rb") as answers:
        size, correlation = struct.unpack(">ii", answers.read(8))
        assert correlation == 7
        return answers.read(size - 4)


def test_the_server_answers_with_the_workloads_bytes(broker: socket.socket, files: Path) -> None:
    assert ask(broker, 3, 4, struct.pack(">i?", -1, False)) == (files / "all-4").read_bytes()
    assert (
        ask(broker, 3, 4, struct.pack(">ih1s?", 1, 1, b"x", False))
        == (files / "one-4").read_bytes()
    )


def test_the_brokers_of_an_answer_have_the_servers_address(
    broker: socket.socket, files: Path
) -> None:
    body = ask(broker, 3, 12, bytes(6))
    assert body[:1] == b"\0"  # no tagged fields in the header
    answer = rdmeta.decode_metadata_response(body[1:], 12)
    assert {(b["host"], b["port"]) for b in answer["brokers"]} == {broker.getpeername()}
    plain = rdmeta.decode_metadata_response((files / "all-12").read_bytes(), 12)
    assert answer["topics"] == plain["topics"]
    assert [b["id"] for b in answer["brokers"]] == [b["id"] for b in plain["brokers"]]
