"""`rdmeta list` and `rdmeta image` answer for any moment of a metadata log."""

from __future__ import annotations

from pathlib import Path

import commands
import pytest
from kraft_logs import DIVERGED, GOLDEN, LOGS, Made

import rdmeta
from rdmeta.generate.logs import Given, Log, uuid_text

BROKER: Given = (
    "REGISTER_BROKER_RECORD",
    0,
    {"brokerId": 1, "incarnationId": uuid_text(1), "brokerEpoch": 0, "fenced": False}
    | {"features": [], "rack": None}
    | {"endPoints": [{"name": "A", "host": "h", "port": 1, "securityProtocol": 0}]},
)
STATIC = ("--log", str(GOLDEN / "4.3.0"))


def listed(*words: str) -> list[list[str]]:
    """Returns the rows of the last table of `rdmeta list`."""
    done = commands.run("list", *words)
    assert (done.code, done.err) == (0, "")
    return [line.split("\t") for line in done.out.rpartition("\n\n")[2].splitlines()[1:]]


@pytest.mark.parametrize("made", LOGS, ids=lambda made: str(made.name))
def test_a_list_of_a_log_is_that_of_its_image(made: Made, tmp_path: Path) -> None:
    of_log = ("--log", str(GOLDEN / made.name))
    assert len(listed(*of_log)) == 7
    path = str(tmp_path / "state")
    assert commands.run("image", "save", path, *of_log).code == 0
    image = commands.run("list", "--image", path, "--table", "partitions")
    assert commands.run("list", *of_log, "--table", "partitions") == image
    assert rdmeta.Image.open(path).cluster_id is not None


def test_conditions_hold_as_of_a_moment() -> None:
    assert listed(*STATIC, "--urp") == []
    urp = listed(*STATIC, "--urp", "--at", "2026-11-26T06:09:28Z")
    orders = [["orders", str(partition)] for partition in range(4)]
    assert [row[:2] for row in urp] == [["audit", "0"], *orders, ["risky", "0"]]
    (row,) = listed(*STATIC, "--leaderless", "--at", "88")
    assert row[:3] == ["risky", "0", "-"]
    least = {(row[0], row[-1]) for row in listed(*STATIC, "--under-min-isr", "--at", "88")}
    assert least == {("orders", "2"), ("risky", "1")}
    skew = {row[0]: row[2] for row in listed(*STATIC, "--skew", "--at", "88")}
    assert skew["3"] == "6"


def test_the_controller_is_the_leader_of_that_moment() -> None:
    for at, controller in (("50", 2), ("100", 3), ("140", 2)):
        done = commands.run("list", *STATIC, "--at", at, "--json")
        found = commands.checked_json(done.out)
        assert found["clusters"][0]["controller"] == controller


def test_a_min_isr_that_the_log_does_not_say_is_unknown(tmp_path: Path) -> None:
    said = "rdmeta: the log has no min.insync.replicas, or no number, of {} topics\n"
    done = commands.run("list", "--log", str(GOLDEN / "3.9.1"), "--under-min-isr")
    assert (done.code, done.err) == (0, said.format(3))
    log = Log()
    setting = {"resourceType": 2, "resourceName": "t", "name": "min.insync.replicas"}
    log.append(
        BROKER,
        ("TOPIC_RECORD", 0, {"name": "t", "topicId": uuid_text(7)}),
        ("CONFIG_RECORD", 0, {**setting, "value": "two"}),
    )
    (tmp_path / log.name).write_bytes(bytes(log.data))
    done = commands.run("list", "--log", str(tmp_path), "--under-min-isr")
    assert (done.code, done.err.endswith(said.format(1))) == (0, True)


def test_an_image_is_compared_with_a_moment(tmp_path: Path) -> None:
    path = str(tmp_path / "state")
    saved = commands.run("image", "save", path, *STATIC, "--at", "70", "--json")
    found = commands.checked_json(saved.out)
    assert (found["topics"], found["taken"]) == (3, "2026-11-26T06:09:21.939Z")
    assert commands.run("image", "diff", path, *STATIC, "--at", "70").code == 0
    done = commands.run("image", "diff", path, *STATIC)
    assert (done.code, done.err) == (1, "")
    assert "gone\t-\ttopic_added" in done.out


def test_a_log_of_which_nothing_is_proven_shows_nothing_and_says_so() -> None:
    for words in (["list", "--log"], ["log", "dump"]):
        done = commands.run(*words, str(GOLDEN / DIVERGED.name / "n3"), "--proven")
        assert (done.code, done.err.startswith("rdmeta: nothing of the log is proven")) == (0, True)


def test_what_is_not_proven_is_said_and_can_be_left_out() -> None:
    stale = ("--log", str(GOLDEN / DIVERGED.name / "n3"))
    done = commands.run("list", *stale, "-t", "never")
    assert (done.code, done.err) == (
        0,
        "rdmeta: offsets 0 to 37 are not proven to be committed\n",
    )
    assert commands.run("list", *stale, "--proven").out.count("\n") == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", *STATIC, "--image", "x"], "--log reads files and asks no cluster"),
        (["list", *STATIC, "--operations"], "--log has no operations: ask the cluster"),
        (["list", "--log", "nix"], "nix: there is no such file or directory"),
        (["list", *STATIC, "--at", "9999"], "offset 9999 is not in the log"),
        (["image", "diff", "a", "b", *STATIC], "image diff reads its files alone: leave out --log"),
        (["image", "save", "a", *STATIC, "-b", "a:1"], "leave out -b and -c"),
    ],
)
def test_options_that_contradict_a_log_are_one_line(words: list[str], said: str) -> None:
    done = commands.run(*words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err
