"""`rdmeta image` saves, compares and checks states."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import commands
import frames
import pytest
from frames import B, P, T
from pyarrow import parquet

import rdmeta
from rdmeta import ALL, MetadataCache
from rdmeta.cli.image import _whole


@pytest.fixture
def cluster() -> Iterator[rdmeta.EmbeddedCluster]:
    with rdmeta.EmbeddedCluster(brokers=3) as made:
        made.create_topic("orders", partitions=2, replication_factor=3)
        made.set_leader("orders", 0, 1)
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state"


def image(*words: str | Path, env: dict[str, str] | None = None) -> commands.Done:
    return commands.run("image", *map(str, words), env=env or {})


def saved(path: Path, topics: list[Any], brokers: list[Any]) -> Path:
    """Saves a state of these topics and brokers; returns the path."""
    cache = MetadataCache()
    cache.apply(frames.response(12, topics, brokers=brokers), 12, ALL)
    cache.image().save(path)
    return path


def two(tmp_path: Path) -> tuple[Path, Path]:
    """Returns two states that differ in many ways."""
    before = [T("a", [P(0, 1, 3), P(1, 2, 3)]), T("b", [P(0, 1)]), T("gone", [P(0, 1)])]
    after = [
        T("a", [P(0, -1, 4, error=5), P(1, 2, 3, isr=(2,)), P(2, 1)]),
        T("b", [P(0, 1, replicas=(1, 2))]),
        T("new", [P(0, 1)]),
    ]
    return (
        saved(tmp_path / "before", before, [B(1), B(2)]),
        saved(tmp_path / "after", after, [B(1, rack="east"), B(3)]),
    )


def test_save_writes_the_state_of_now(cluster: rdmeta.EmbeddedCluster, file: Path) -> None:
    done = image("save", file, "-b", cluster.bootstrap)
    found = rdmeta.Image.open(file)
    found.verify()
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "file\tcluster_id\ttaken\tbrokers\ttopics\tpartitions"
    assert done.out.splitlines()[1].split("\t")[1] == found.cluster_id
    assert done.out.splitlines()[1].split("\t")[3:] == ["3", "1", "2"]
    assert (list(found), found.leader("orders", 0)) == (["orders"], 1)
    assert [each.name for each in file.parent.iterdir()] == ["state"]


@pytest.mark.parametrize("action", ["save", "verify"])
def test_json_of_one_state_obeys_the_schema(
    cluster: rdmeta.EmbeddedCluster, file: Path, action: str
) -> None:
    image("save", file, "-b", cluster.bootstrap)
    source = () if action == "verify" else ("-b", cluster.bootstrap)
    found = commands.checked_json(image(action, file, *source, "--json").out)
    assert (found["action"], found["file"]) == (action, str(file))
    assert (found["brokers"], found["topics"], found["partitions"]) == (3, 1, 2)


def test_a_save_that_fails_leaves_the_earlier_file(file: Path) -> None:
    file.write_bytes(b"earlier")
    done = image("save", file, "-b", "127.0.0.1:1", "--timeout", "0.5")
    assert (done.code, done.out, file.read_bytes()) == (3, "", b"earlier")
    assert [each.name for each in file.parent.iterdir()] == ["state"]


def test_diff_compares_a_file_with_now(cluster: rdmeta.EmbeddedCluster, file: Path) -> None:
    image("save", file, "-b", cluster.bootstrap)
    same = image("diff", file, "-b", cluster.bootstrap)
    assert same == (0, "topic\tpartition\tkind\told\tnew\n", "")
    cluster.set_leader("orders", 0, 2)
    done = image("diff", file, "-b", cluster.bootstrap)
    assert (done.code, done.err) == (1, "")
    (row,) = done.out.splitlines()[1:]
    assert row.split("\t")[:3] == ["orders", "0", "leader_changed"]
    assert [cell.partition(" ")[0] for cell in row.split("\t")[3:]] == ["1", "2"]


def test_diff_compares_two_files(tmp_path: Path) -> None:
    done = image("diff", *two(tmp_path))
    assert (done.code, done.err) == (1, "")
    rows = [line.split("\t") for line in done.out.splitlines()[1:]]
    assert rows == [
        ["-", "-", "broker_changed", "-", "1 broker.example:9092 rack=east"],
        ["-", "-", "broker_removed", "2 broker.example:9092", "-"],
        ["-", "-", "broker_added", "-", "3 broker.example:9092"],
        ["a", "0", "leader_changed", "1 (epoch 3)", "none (epoch 4)"],
        ["a", "0", "partition_error", "-", "LEADER_NOT_AVAILABLE"],
        ["a", "1", "isr_changed", "1,2,3", "2"],
        ["a", "2", "partitions_added", "-", "1 (epoch 0)"],
        ["b", "0", "isr_changed", "1,2,3", "1,2"],
        ["b", "0", "replicas_changed", "1,2,3", "1,2"],
        ["gone", "-", "topic_removed", "-", "-"],
        ["new", "-", "topic_added", "-", "-"],
    ]
    again = image("diff", tmp_path / "after", tmp_path / "after")
    assert (again.code, again.out.count("\n")) == (0, 1)


def test_a_row_whose_values_are_equal_says_what_the_change_is(tmp_path: Path) -> None:
    cache = MetadataCache()
    for name, epochs in (("before", (5, -1)), ("after", (6, -1))):  # -1: not known any more
        for epoch in epochs:
            cache.apply(frames.response(12, [T("a", [P(0, 3, epoch)])], brokers=[B(3)]), 12, ALL)
        cache.image().save(tmp_path / name)
    row = image("diff", tmp_path / "before", tmp_path / "after").out.splitlines()[1]
    assert row == "a\t0\tleader_epoch_changed\t3\t3, with changes in between"


def test_the_forms_of_a_diff_say_the_same(tmp_path: Path) -> None:
    files = two(tmp_path)
    found = commands.checked_json(image("diff", *files, "--json").out)
    kinds = [each["kind"] for each in found["changes"]]
    assert len(kinds) == 11
    assert (found["before"]["topics"], found["after"]["partitions"]) == (3, 5)
    leader = found["changes"][kinds.index("leader_changed")]
    assert leader["old"] == {"leader": 1, "leader_epoch": 3}
    assert leader["new"] == {"leader": None, "leader_epoch": 4}
    csv = image("diff", *files, "--csv")
    assert [line.split(",")[2] for line in csv.out.splitlines()[1:]] == kinds
    assert csv.code == 1
    table = tmp_path / "diff.parquet"
    assert image("diff", *files, "--parquet", table) == (1, "", "")
    assert parquet.read_table(table)["kind"].to_pylist() == kinds


def test_a_whole_file_is_verified(tmp_path: Path) -> None:
    done = image("verify", two(tmp_path)[0])
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[1].split("\t")[3:] == ["2", "3", "4"]


def test_a_file_that_changes_after_its_check_is_read_as_it_was(tmp_path: Path) -> None:
    path, _ = two(tmp_path)
    found = _whole(str(path))
    with open(path, "r+b") as file:
        file.write(bytes(path.stat().st_size))
    assert found.health().partitions == 4
    assert sorted(found) == ["a", "b", "gone"]


@pytest.mark.parametrize("words", [("verify",), ("diff",)])
def test_each_damage_is_found(tmp_path: Path, words: tuple[str, ...]) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed={seed}")
    chance = random.Random(seed)
    whole, other = two(tmp_path)
    data, damaged = whole.read_bytes(), tmp_path / "damaged"
    flipped = bytearray(data)
    flipped[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    more = (other,) if words == ("diff",) else ()
    for content in (bytes(flipped), data[: len(data) // 2], b"", b"x" * 5000):
        damaged.write_bytes(content)
        done = image(*words, damaged, *more)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert f"image '{damaged}'" in done.err


def test_a_published_state_is_an_image_too(cluster: rdmeta.EmbeddedCluster, file: Path) -> None:
    assert commands.run("publish", str(file), "-b", cluster.bootstrap, "--for", "0.1").code == 0
    assert image("verify", file).code == 0
    assert image("diff", file, "-b", cluster.bootstrap).code == 0


def test_a_file_with_an_odd_name_is_saved(cluster: rdmeta.EmbeddedCluster, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"st\xff\x1bte")
    done = image("save", odd, "-b", cluster.bootstrap)
    assert (done.code, done.err) == (0, "")
    assert f"{tmp_path}/st\\udcff\\x1bte\t" in done.out
    assert image("verify", odd).code == 0


@pytest.mark.parametrize("path", ["missing/state", "."])
def test_a_file_that_cannot_be_saved_ends_with_2(
    cluster: rdmeta.EmbeddedCluster, tmp_path: Path, path: str
) -> None:
    done = commands.run("image", "save", path, "-b", cluster.bootstrap, cwd=tmp_path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert done.err.startswith(f"rdmeta: {path}: ")
