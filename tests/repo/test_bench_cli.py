"""The command's benches compare equal outputs, whole processes and their own memory. No speeds."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from bench.cli import json, listing, process, scrape, start, waiting
from bench.cli.__main__ import PROGRAM

LISTED = b"broker\n1\n\ntopic\tp\tl\te\tr\ti\to\n" + b"".join(
    f"orders\t{n}\t1\t99\t1,2\t1,2\t-\n".encode() for n in range(10)
)


@pytest.mark.slow
def test_the_list_is_timed_beside_a_script_that_prints_the_same_and_kcat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kcat = tmp_path / "kcat"
    kcat.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n')
    kcat.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found = listing.measure(20, 1)
    assert found.pop("missing") == {}
    assert {key: len(times) for key, times in found.items()} == dict.fromkeys(
        ("command", "confluent", "kcat"), 1
    )
    words = (tmp_path / "asked").read_text().splitlines()[0].split()
    assert words[:2] == ["-L", "-b"]
    assert words[2].startswith("127.0.0.1:")


@pytest.mark.slow
def test_a_peer_of_the_list_that_is_not_installed_is_missing_for_that_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "kcat" else which(name))
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    found = listing.measure(20, 1)
    assert len(found["command"]) == 1
    assert found["missing"] == {
        "confluent": "confluent_kafka is not installed",
        "kcat": "kcat is not installed",
    }


def test_outputs_with_other_leaders_or_too_few_lines_end_the_bench() -> None:
    listing.check(1, LISTED, LISTED.replace(b"\t99\t", b"\t-\t"))  # an epoch that is not known
    with pytest.raises(SystemExit, match="other partitions"):
        listing.check(1, LISTED, LISTED.replace(b"\t1\t99", b"\t2\t99"))
    with pytest.raises(SystemExit, match="lines for 2 topics"):
        listing.check(2, LISTED, None)


def test_the_memory_of_a_process_is_its_own_and_not_that_of_the_bench() -> None:
    ballast = bytearray(b"x" * (128 << 20))  # written to, so it is in memory
    memory, output = process.peak("--version")
    assert len(ballast) > memory > 5 << 20
    assert output == len(process.run(process.rdmeta("--version")).out)


def test_a_process_that_fails_ends_the_bench_with_what_it_said() -> None:
    with pytest.raises(SystemExit, match=r"exit code 2: rdmeta: there is no command 'nothing'"):
        process.run(process.rdmeta("nothing"))


def test_no_setting_of_the_user_reaches_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RDMETA_BOOTSTRAP", "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.setenv(name, "1")
        assert name not in process.surroundings()


@pytest.mark.slow
def test_the_other_parts_without_kafka_have_each_series_once_per_round() -> None:
    assert {key: len(times) for key, times in json.measure(20, 1).items()} == dict.fromkeys(
        ("json", "plain", "memory", "output"), 1
    )
    assert {key: len(times) for key, times in start.measure(1).items()} == dict.fromkeys(
        ("help", "version", "click"), 1
    )
    assert {key: len(times) for key, times in scrape.measure(20, 2).items()} == dict.fromkeys(
        ("scrape", "arrow"), 2
    )


def test_a_wait_is_started_for_the_topic_as_command_and_as_script() -> None:
    assert waiting.words("command", "b:1", "orders")[-5:] == ["wait", "-b", "b:1", "-t", "orders"]
    assert waiting.words("script", "b:1", "orders")[-3:] == [waiting.SCRIPT, "b:1", "orders"]
    assert PROGRAM.kafka == ("waiting",)
