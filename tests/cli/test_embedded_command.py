"""`rdmeta embedded` runs a cluster, on its own or around another command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import commands
import pytest
from in_process import Running
from waiting import until

import rdmeta

# A program that writes "ready", and then says which signals come; SIGTERM ends it.
HEARS = """
import os, signal, sys, time
def say(number, frame):  # it may interrupt a print
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
    if number == signal.SIGTERM:
        sys.exit(7)
signal.signal(signal.SIGINT, say)
signal.signal(signal.SIGTERM, say)
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""


def topics_of(bootstrap: str) -> dict[str, list[int]]:
    """Returns the number of replicas of each partition of each topic."""
    cache = rdmeta.MetadataCache()
    rdmeta.fetch(cache, bootstrap)
    return {
        topic.name: [len(each.replicas) for each in topic.partitions]
        for topic in (cache.topic(name) for name in cache)
    }


@contextmanager
def running(*words: str) -> Iterator[tuple[commands.Started, str]]:
    """Yields a cluster's process, and the first line of its output."""
    with commands.started("embedded", *words) as process:
        yield process, process.next_line()


def made(*words: str) -> tuple[str, dict[str, list[int]]]:
    """Runs a cluster; returns its servers, and the replicas of each partition of each topic."""
    found = {}

    def read(running: Running) -> None:
        found.update(topics_of(running.out.next_line().strip()))
        running.interrupt()

    done = commands.run("embedded", *words, meanwhile=read)
    assert (done.code, done.err) == (130, "")
    return done.out, found


def test_the_first_line_names_the_servers_at_once() -> None:
    bootstrap, topics = made("--brokers", "2", "--topic", "orders:6", "--topic", "clicks:2:1")
    assert bootstrap.count("127.0.0.1:") == 2
    assert topics == {"clicks": [1, 1], "orders": [2] * 6}


def test_a_topic_has_one_partition_and_three_replicas_by_default() -> None:
    assert made("--topic", "orders")[1] == {"orders": [3]}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_it_runs_until_a_signal(number: int, code: int) -> None:
    with running() as (process, bootstrap):
        assert process.poll() is None
        assert process.ended(number) == (code, "", "")
    with pytest.raises(rdmeta.TransportError):
        rdmeta.fetch(rdmeta.MetadataCache(), bootstrap)


def test_ctrl_c_on_a_terminal_ends_it() -> None:
    with commands.Terminal("embedded", "--brokers", "1") as terminal:
        terminal.wait_for("Ctrl-C ends the cluster")
        assert terminal.text.startswith("127.0.0.1:")
        terminal.type("\x03")
        assert terminal.end() == 130


def test_a_command_gets_the_servers_and_gives_its_exit_code() -> None:
    shown = "import os, sys; print(os.environ['RDMETA_BOOTSTRAP']); sys.exit(5)"
    done = commands.run_process("embedded", "--brokers", "2", "--", sys.executable, "-c", shown)
    assert (done.code, done.err) == (5, "")
    (line,) = done.out.splitlines()
    assert line.count("127.0.0.1:") == 2


def test_a_commands_own_options_need_no_dashes() -> None:
    done = commands.run_process("embedded", "--brokers", "1", sys.executable, "-c", "print(1)")
    assert done == (0, "1\n", "")


def test_options_of_another_cluster_do_not_reach_the_command() -> None:
    shown = "import os; print(*(k for k in os.environ if k.startswith('RDMETA_')), sep=',')"
    env = {
        "RDMETA_SECURITY_PROTOCOL": "sasl_ssl",
        "RDMETA_SASL_PASSWORD": "x",
        "RDMETA_SASL_JAAS_CONFIG": "x",
        "RDMETA_METADATA_BROKER_LIST": "x",
        "RDMETA_CLUSTERS": "x",
    }
    done = commands.run_process("embedded", "--", sys.executable, "-c", shown, env=env)
    assert sorted(done.out.strip().split(",")) == ["RDMETA_BOOTSTRAP", "RDMETA_CLUSTERS"]


def test_a_command_that_a_signal_ends_gives_the_code_of_a_shell() -> None:
    done = commands.run("embedded", "--", "sh", "-c", "kill -9 $$")
    assert done == (128 + 9, "", "")


def test_signals_reach_the_command() -> None:
    with running("--", sys.executable, "-c", HEARS) as (process, ready):
        assert ready == "ready"
        process.send_signal(signal.SIGINT)
        assert process.next_line() == "SIGINT"
        process.send_signal(signal.SIGTERM)
        assert process.next_line() == "SIGTERM"
        assert process.wait(30) == -signal.SIGTERM


def test_ctrl_c_on_a_terminal_reaches_the_command_once_and_leaves_the_cluster() -> None:
    program = HEARS.replace('print("ready"', 'print("re" + "ady"')
    with commands.Terminal("embedded", "--", sys.executable, "-c", program) as terminal:
        terminal.wait_for("ready")
        terminal.type("\x03")
        terminal.wait_for("SIGINT")
        time.sleep(0.3)
        assert terminal.process.poll() is None
        terminal.process.terminate()
        terminal.end()
        assert terminal.text.count("SIGINT") == 1


def test_a_sigint_while_the_command_starts_reaches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    popen, ready = subprocess.Popen, tmp_path / "ready"

    def slow(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        process = popen(*words, **options)
        until(ready.exists)
        signal.raise_signal(signal.SIGINT)
        return process

    monkeypatch.setattr(subprocess, "Popen", slow)
    program = f"trap 'exit 5' INT; touch {ready}; while :; do sleep 0.05; done"
    assert commands.run("embedded", "--", "sh", "-c", program) == (5, "", "")


def test_without_confluent_kafka_it_names_the_extras() -> None:
    program = (
        "from importlib import metadata\n"
        "def absent(name): raise metadata.PackageNotFoundError(name)\n"
        "metadata.distribution = absent\n"
    )
    done = commands.run_process("embedded", program=program + commands.PROGRAM)
    assert (done.code, done.out) == (2, "")
    assert "pip install -e '.[kafka,cffi]'" in done.err


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path) -> None:
    tool = tmp_path / "rdmeta"
    tool.write_text(f"#!{sys.executable}\n{commands.PROGRAM}\n")
    tool.chmod(0o755)
    first, second = commands.examples("embedded")
    assert made(*first[1:])[1] == {"clicks": [3], "orders": [3] * 6}
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = commands.run_process(*second, env={"PATH": path})
    assert (done.code, done.err) == (0, "")
    assert sum(line.startswith("orders\t") for line in done.out.splitlines()) == 6
