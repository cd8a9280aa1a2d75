"""`rdmeta log dump` prints the records that were asked for, with names of topics."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import commands
import pytest
from kraft_frames import FRAMES
from kraft_logs import GOLDEN, LOG, LOGS
from pyarrow import parquet

STATIC = GOLDEN / "4.3.0"


def dump(*words: Any) -> commands.Done:
    return commands.run("log", "dump", *map(str, words))


def lines(*words: Any) -> list[Any]:
    done = dump(*words, "--json")
    assert (done.code, done.err) == (0, "")
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.parametrize("name", [*(made.name for made in LOGS), FRAMES])
def test_a_line_is_a_record_as_kafkas_own_tool_prints_it(name: str) -> None:
    printed = gzip.decompress((GOLDEN / name / "dump.txt.gz").read_bytes()).decode()
    of_log = printed.partition(f"{0:020d}.log\n")[2].partition("Dumping")[0]
    wanted = [
        json.loads(line.partition("payload: ")[2])
        for line in of_log.splitlines()
        if '"type"' in line
    ]
    done = dump(GOLDEN / name, "--show-secrets", "--json")
    found = list(map(json.loads, done.out.splitlines()))
    assert [each["offset"] for each in found] == list(range(len(found)))
    names = ("type", "version", "data")
    assert wanted == [
        {name: each[name] for name in names} for each in found if each["type"].endswith("_RECORD")
    ]


def test_records_are_chosen_by_type_topic_partition_broker_and_time() -> None:
    assert {each["type"] for each in lines(STATIC, "--type", "topic")} == {"TOPIC_RECORD"}
    both = lines(STATIC, "--type", "leader-change", "--type", "FENCE_BROKER")
    assert {each["type"] for each in both} == {"LEADER_CHANGE"}
    gone = lines(STATIC, "--topic", "gone")
    assert [each["type"] for each in gone][:3] == [
        "TOPIC_RECORD", "CONFIG_RECORD", "PARTITION_RECORD",
    ]  # fmt: skip
    assert gone[3]["type"] == "REMOVE_TOPIC_RECORD"
    third = lines(STATIC, "--topic", "orders", "--partition", "3", "--until", "80")
    assert [each["offset"] for each in third] == [44, 76]
    assert {each["offset"] for each in lines(STATIC, "--broker", "3")} >= {12, 22, 115, 122}
    cut = lines(STATIC, "--since", "77", "--until", "79")
    assert [each["offset"] for each in cut] == [77, 78]
    late = lines(STATIC, "--since", "2026-11-26T06:10:29.143Z")
    assert [each["offset"] for each in late] == [138, 139]


def test_a_table_has_the_data_as_json() -> None:
    done = dump(STATIC, "--since", "139")
    header, row = (line.split("\t") for line in done.out.splitlines())
    assert header == ["offset", "time", "epoch", "type", "version", "topic", "data"]
    assert row[:6] == [
        "139", "2026-11-26T06:10:29.299Z", "6", "PARTITION_CHANGE_RECORD", "2", "orders",
    ]  # fmt: skip
    assert json.loads(row[6])["isr"] == [1, 2, 3]


def test_records_are_a_file_of_parquet_or_csv(tmp_path: Any) -> None:
    path = tmp_path / "records.parquet"
    assert dump(STATIC, "--parquet", path) == (0, "", "")
    table = parquet.read_table(path)
    assert table["offset"].to_pylist() == list(range(140))
    assert table.schema.names == ["offset", "time", "epoch", "type", "version", "topic", "data"]
    assert dump(STATIC, "--csv").out.count("\n") == 141


def test_batches_have_their_places() -> None:
    found = lines(STATIC / "n1", "--batches", "--until", "43", "--proven")
    assert found[0] == {
        "first": 0,
        "last": 0,
        "time": "2026-11-26T06:08:24.562Z",
        "epoch": 2,
        "control": True,
        "records": 1,
        "bytes": 106,
        "byte": 0,
        "file": str(STATIC / "n1" / LOG / f"{0:020d}.log"),
    }
    assert [each["byte"] for each in found[1:3]] == [106, 106 + found[1]["bytes"]]
    assert found[-1]["last"] == 42


def test_batches_of_damaged_files_and_of_snapshots_are_shown(tmp_path: Path) -> None:
    data = bytearray((STATIC / "n1" / LOG / f"{0:020d}.log").read_bytes())
    data[16] = 9
    (tmp_path / f"{0:020d}.log").write_bytes(data)
    done = dump(tmp_path, "--batches", "--skip-corrupt")
    assert (done.code, "byte 0: no record batch" in done.err) == (0, True)
    assert done.out.splitlines()[1].startswith("1\t")
    (snapshot,) = (STATIC / "n1" / LOG).glob("*.checkpoint")
    assert len(dump(snapshot, "--batches").out.splitlines()) == 4


def test_a_snapshot_alone_is_dumped() -> None:
    (path,) = (STATIC / "n1" / LOG).glob("*.checkpoint")
    found = lines(path)
    assert found[0]["type"] == "SNAPSHOT_HEADER"
    assert found[-1]["type"] == "SNAPSHOT_FOOTER"
    assert "orders" in {each.get("topic") for each in found}
    for name in ("topic", "2"):
        topics = lines(path, "--type", name, "--topic", "orders")
        assert [each["type"] for each in topics] == ["TOPIC_RECORD"]


def test_what_a_quorum_begins_with_is_dumped_if_there_is_nothing_else(tmp_path: Path) -> None:
    name = f"{0:020d}-{0:010d}.checkpoint"
    shutil.copy(GOLDEN / "4.3.0-dynamic/n1" / LOG / name, tmp_path)
    wanted = ["SNAPSHOT_HEADER", "KRAFT_VERSION", "KRAFT_VOTERS", "SNAPSHOT_FOOTER"]
    for _ in range(2):
        assert [each["type"] for each in lines(tmp_path)] == wanted
        info = commands.checked_json(commands.run("log", "info", str(tmp_path), "--json").out)
        assert info["files"][-1]["why_not"] == "it has the first voters of a quorum, and no state"
        assert commands.run("log", "check", str(tmp_path)).code == 0
        (tmp_path / f"{0:020d}.log").touch()


@pytest.mark.parametrize(("cut", "said"), [(9, "cut short"), (None, "its CRC is wrong")])
def test_a_snapshot_that_is_damaged_is_dumped_until_there(
    cut: int | None, said: str, tmp_path: Path
) -> None:
    (source,) = (STATIC / "n1" / LOG).glob("*.checkpoint")
    data = bytearray(source.read_bytes())
    if cut is None:
        data[500] ^= 1
    (tmp_path / source.name).write_bytes(data[: len(data) - (cut or 0)])
    done = commands.run("log", "dump", str(tmp_path), "--json")
    assert (done.code, said in done.err) == (2, True)
    assert "SNAPSHOT_HEADER" in done.out
    assert "SNAPSHOT_FOOTER" not in done.out
