"""`rdmeta log`: what each word prints of real logs, in each form, and how it ends."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import commands
import pytest
from kraft_cluster import Cluster
from kraft_logs import DIVERGED, GOLDEN, LOG, LOGS, RETAINED
from pyarrow import parquet

STATIC = GOLDEN / "4.3.0"
STALE = GOLDEN / DIVERGED.name


def log(word: str, *words: str | Path) -> commands.Done:
    return commands.run("log", word, *map(str, words))


def rows(done: commands.Done) -> list[dict[str, str]]:
    """Returns the rows of the last table."""
    header, *lines = done.out.rpartition("\n\n")[2].splitlines()
    names = header.split("\t")
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines]


def json_of(word: str, *words: str | Path) -> Any:
    return commands.checked_json(log(word, *words, "--json").out)


# ---- info ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [*LOGS, DIVERGED], ids=lambda made: str(made.name))
def test_info_says_what_there_is_and_who_led(made: Any) -> None:
    found = json_of("info", GOLDEN / made.name)
    assert [node["node"] for node in found["nodes"]] == [1, 2, 3]
    assert {*found["nodes"][0]["roles"]} == {"voter", "broker"}
    assert found["proven_to"] == found["last"] + 1
    assert [voter["voter"] for voter in found["voters"]] == [1, 2, 3]
    assert all(voter["endpoints"][0].startswith("CONTROLLER://") for voter in found["voters"])
    assert (found["voters"][0]["directory_id"] is not None) == made.has_dynamic_quorum
    epochs = found["epochs"]
    assert all(each["leader"] in each["elected_by"] for each in epochs)
    assert [each["first"] for each in epochs[1:]] == [each["last"] + 1 for each in epochs[:-1]]
    assert epochs[0]["none_led_s"] is None
    assert all(each["none_led_s"] > 0 for each in epochs[1:])


def test_a_copy_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    shutil.copytree(STATIC, tmp_path, dirs_exist_ok=True)
    segment = tmp_path / "n1" / LOG / f"{0:020d}.log"
    segment.write_bytes(b"noise" * 20)
    for word in ("info", "ls", "changes", "dump"):
        done = log(word, tmp_path)
        assert done.code == 0
        assert done.err.startswith(f"rdmeta: a copy is left out: {segment}, byte 0: no record")


def test_info_prints_five_tables_and_csv_the_last_one() -> None:
    done = log("info", STATIC)
    assert (done.code, done.err) == (0, "")
    assert done.out.count("\n\n") == 4
    assert [row["leader"] for row in rows(done)] == ["2", "3", "3", "2"]
    assert log("info", STATIC, "--csv").out.startswith("epoch,leader,first,last,began,ended,")


def test_info_names_snapshots_that_are_not_used_and_torn_ends(tmp_path: Path) -> None:
    shutil.copytree(STATIC / "n1", tmp_path / "n1")
    (snapshot,) = (tmp_path / "n1" / LOG).glob("*.checkpoint")
    snapshot.write_bytes(snapshot.read_bytes()[:-9])
    segment = tmp_path / "n1" / LOG / f"{0:020d}.log"
    segment.write_bytes(segment.read_bytes()[:-9])
    done = log("info", tmp_path, "--json")
    found = commands.checked_json(done.out)
    whys = {file["kind"]: file["why_not"] for file in found["files"]}
    assert whys["segment"] is None
    assert whys["snapshot"].startswith("it is cut short")
    assert "a batch that is cut off at the end" in done.err
    assert found["proven_by"] == "nothing"
    segment.write_bytes(b"")
    snapshot.unlink()
    done = log("info", tmp_path, "--json")
    assert {*commands.checked_json(done.out)["nodes"][0]["roles"]} == {"voter"}
    assert done.err == f"rdmeta: {segment} is empty\n"
    data = bytearray((STATIC / "n1" / LOG / segment.name).read_bytes())
    data[5000] ^= 1
    segment.write_bytes(data)
    done = log("info", tmp_path, "--skip-corrupt")
    assert (done.code, "its CRC is wrong" in done.err) == (0, True)


# ---- changes ------------------------------------------------------------------------------------


def test_changes_have_offsets_and_the_words_of_watch(tmp_path: Path) -> None:
    done = log("changes", STATIC, "--topic", "audit", "--since", "60", "--until", "80")
    found = [(row["offset"], row["kind"], row["old"], row["new"]) for row in rows(done)]
    assert found == [
        ("67", "replicas_changed", "1,2", "2,3,1"),
        ("67", "reassignment_changed", "-", "adding 3, removing 1"),
        ("68", "leader_changed", "1 (epoch 0)", "2 (epoch 1)"),
        ("68", "isr_changed", "1,2", "2,3"),
        ("68", "replicas_changed", "2,3,1", "2,3"),
        ("68", "reassignment_changed", "-", "ended"),
        ("78", "leader_changed", "2 (epoch 1)", "3 (epoch 2)"),
        ("78", "isr_changed", "2,3", "3"),
    ]
    table = tmp_path / "x.parquet"
    assert log("changes", STATIC, "--parquet", table).code == 0
    assert parquet.read_table(table)["offset"].to_pylist()[:2] == [0, 8]
    lines = log("changes", STATIC, "--broker", "2", "--json").out.splitlines()
    kinds = [commands.checked_json(line)["kind"] for line in lines]
    assert kinds.count("broker_fenced") == 2
    assert kinds[-1] == "controller_changed"


def test_recordings_are_written_for_history_and_the_pipeline(tmp_path: Path) -> None:
    found = json_of("changes", STATIC, "--recordings", tmp_path)["recordings"]
    (path,) = found
    assert [str(each) for each in tmp_path.rglob("*.parquet")] == found
    kinds = parquet.read_table(path)["kind"].to_pylist()
    assert (kinds[0], kinds[-1]) == ("observed_from", "observed_to")
    done = log("changes", STALE / "n3", "--recordings", tmp_path / "unproven")
    assert (done.code, done.out) == (0, "recording\n")
    assert done.err.endswith("offsets 0 to 37 are not proven to be committed, and are left out\n")
    shutil.copytree(STATIC / "n1" / LOG, tmp_path / "alone" / LOG)
    for words in ([STATIC, "--since", "3"], [tmp_path / "alone"]):
        refused = log("changes", *words, "--recordings", tmp_path)
        assert (refused.code, refused.err.count("\n")) == (2, 1)


def test_a_broker_has_the_endpoint_of_a_listener() -> None:
    done = log("changes", STATIC, "--listener", "PLAINTEXT", "--until", "13", "--broker", "1")
    assert rows(done)[0]["new"].startswith("1 127.0.0.1:")
    assert "127.0.0.1" not in log("changes", STATIC, "--listener", "X", "--until", "13").out


# ---- explain ------------------------------------------------------------------------------------


def test_explain_names_causes_and_marks_what_is_inferred() -> None:
    done = log("explain", STATIC, "orders/0")
    assert (done.code, done.err) == (0, "")
    isr = [(row["value"], row["stood"], row["cause"]) for row in rows(done) if row["what"] == "isr"]
    assert isr[1] == ("1,3", "2.771 s", "broker 2 was fenced (offset 79)")
    assert isr[3][2] == "2 caught up with leader 3 (inferred)"
    assert isr[-1][1] == "-"


def test_explain_takes_a_topic_a_partition_or_a_broker() -> None:
    whole = json_of("explain", STATIC, "orders")
    assert {turn["partition"] for turn in whole["turns"]} == {0, 1, 2, 3}
    one = json_of("explain", STATIC, "--topic", "orders", "--partition", "3")
    assert {turn["partition"] for turn in one["turns"]} == {3}
    assert (one["topic"], one["partition"], one["proven"]) == ("orders", 3, True)
    broker = json_of("explain", STATIC, "--broker", "3")
    assert {turn["what"] for turn in broker["turns"]} == {"registration"}
    assert [turn["inferred"] for turn in broker["turns"]] == [True] * 6


def test_a_log_without_its_begin_is_explained_from_its_snapshot(tmp_path: Path) -> None:
    (tmp_path / LOG).mkdir()
    source = STATIC / "n3" / LOG
    (snapshot,) = source.glob("*52-*.checkpoint")
    shutil.copy(snapshot, tmp_path / LOG)
    dump = commands.run("log", "dump", str(source), "--batches", "--json").out.splitlines()
    byte = next(json.loads(line)["byte"] for line in dump if json.loads(line)["first"] == 52)
    data = (source / f"{0:020d}.log").read_bytes()[byte:]
    (tmp_path / LOG / f"{52:020d}.log").write_bytes(data)
    first = json_of("explain", tmp_path, "orders/0")["turns"][0]
    assert (first["offset"], first["cause"]) == (51, "a snapshot says so: then, or before")
    first = json_of("explain", tmp_path, "--broker", "2")["turns"][0]
    assert first["value"] == "unfenced"


def test_each_word_answers_of_a_real_log_of_which_old_segments_were_deleted() -> None:
    retained = GOLDEN / RETAINED
    for word, *rest in (["dump"], ["changes"], ["ls"], ["explain", "orders/0"], ["check"]):
        done = log(word, retained, *rest)
        assert (done.code, done.err) == (0, "")
    turns = json_of("explain", retained, "orders/0")["turns"]
    assert turns[0]["cause"] == "a snapshot says so: then, or before"
    assert json_of("info", retained)["epochs"][0]["leader"] == 1
    found = [json.loads(line) for line in log("dump", retained, "--json").out.splitlines()]
    assert (found[0]["offset"], found[-1]["offset"]) == (509, 588)
    refused = log("dump", retained, "--since", "500")
    assert (refused.code, "no state at offset 500 can be made" in refused.err) == (2, True)


# ---- diff and check -----------------------------------------------------------------------------


def test_diff_compares_two_points_of_a_log() -> None:
    done = log("diff", STATIC, "73", "80")
    assert (done.code, done.err) == (1, "")
    assert {row["what"] for row in rows(done)} == {"partition", "broker"}
    found = [tuple(row.values())[1:] for row in rows(done) if row["name"] == "orders/1"]
    assert found == [
        ("orders/1", "leader", "2", "3"),
        ("orders/1", "leader_epoch", "0", "1"),
        ("orders/1", "partition_epoch", "0", "1"),
        ("orders/1", "isr", "[2,3,1]", "[3,1]"),
    ]
    same = log("diff", STATIC, "80", "2026-11-26T06:09:27.999Z")
    assert (same.code, rows(same)) == (0, [])


def test_diff_compares_two_logs_whatever_their_snapshots() -> None:
    for made in LOGS:
        copies = [GOLDEN / made.name / f"n{node}" for node in (1, 2)]
        done = log("diff", *copies, "-q")
        only_kafkas = [row for row in rows(done) if '"gone"' not in row["after"]]
        assert only_kafkas == []
    done = log("diff", STALE / "n3", STALE / "n1")
    assert done.code == 1
    found = {(row["what"], row["name"], row["before"] == "-") for row in rows(done)}
    assert ("topic", "after", True) in found
    assert "are not proven to be committed" in done.err


def test_diff_names_quotas_as_kafkas_shell_does() -> None:
    names = {
        row["name"] for row in rows(log("diff", STATIC, "1", "130")) if row["what"] == "quotas"
    }
    assert names == {"user(ann)/producer_byte_rate"}


def test_diff_as_json_has_both_sides() -> None:
    found = json_of("diff", STATIC, "70", "72")
    assert (found["before"]["offset"], found["after"]["offset"]) == (70, 72)
    kinds = {(each["kind"], each["before"] is None) for each in found["differences"]}
    assert kinds == {("topic", True), ("partition", True)}


def test_check_ends_with_1_for_a_serious_finding_alone(tmp_path: Path) -> None:
    done = log("check", STALE)
    assert (done.code, done.err) == (0, "")
    (row,) = rows(done)
    assert row["serious"] == "false"
    assert "offsets 34 to 37 of epoch 1 never committed" in row["finding"]
    cluster = Cluster(tmp_path, 2)
    cluster.logs[2].data[-1] ^= 1
    cluster.looked_at()
    done = log("check", tmp_path, "--json")
    assert done.code == 1
    assert any(each["serious"] for each in commands.checked_json(done.out)["findings"])


# ---- what is not proven -------------------------------------------------------------------------


def test_what_never_committed_is_said_to_be_unproven_and_can_be_left_out() -> None:
    stale = STALE / "n3"
    shown = log("dump", stale, "--topic", "never", "--json")
    assert '"never"' in shown.out
    assert shown.err == "rdmeta: offsets 0 to 37 are not proven to be committed\n"
    for word in ("dump", "changes", "find"):
        assert "never" in log(word, stale).out
        assert "never" not in log(word, stale, "--proven").out
    assert not json_of("explain", stale, "never")["proven"]
    rows = log("changes", STALE / "n1", "--json").out.splitlines()
    assert not any(commands.checked_json(row)["proven"] for row in rows)
    rows = log("changes", STALE, "--json").out.splitlines()
    assert all(commands.checked_json(row)["proven"] for row in rows)
    assert log("explain", stale, "never", "--proven").code == 1


def test_a_corrupt_batch_is_an_error_or_passed_over(tmp_path: Path) -> None:
    shutil.copytree(STATIC / "n1", tmp_path / "n1")
    (snapshot,) = (tmp_path / "n1" / LOG).glob("*.checkpoint")
    snapshot.unlink()
    segment = tmp_path / "n1" / LOG / f"{0:020d}.log"
    data = bytearray(segment.read_bytes())
    data[data.index(b"audit") + 1] ^= 1
    segment.write_bytes(bytes(data))
    for word, *options in (["dump"], ["cat"], ["changes"], ["explain", "--broker", "2"]):
        done = log(word, tmp_path, *options)
        assert done.code == 2
        assert f"{segment}, byte " in done.err
        done = log(word, tmp_path, *options, "--skip-corrupt")
        assert done.code == 0
        assert f"rdmeta: passed over: {segment}, byte " in done.err
    done = log("cat", tmp_path, "/image/provenance", "--skip-corrupt")
    assert '"partial": true' in done.out
    assert "rdmeta: passed over: " in done.err
    assert "the answer is partial" in done.err


def test_a_time_that_no_clock_has_is_shown_and_its_batch_is_found(tmp_path: Path) -> None:
    (tmp_path / LOG).mkdir()
    data = bytearray((STATIC / "n1" / LOG / f"{0:020d}.log").read_bytes())
    data[106 + 36] = 0x7F  # the latest time of the second batch
    (tmp_path / LOG / f"{0:020d}.log").write_bytes(bytes(data))
    done = log("dump", tmp_path, "--batches")
    assert rows(done)[1]["time"] == "9999-12-31T23:59:59.999Z"
    assert "byte 106, offset 1" in log("check", tmp_path).out


# ---- the command line ---------------------------------------------------------------------------


def test_the_examples_run(tmp_path: Path) -> None:
    for words in commands.examples("log"):
        given = [word.replace("/var/kafka/metadata", str(STATIC)) for word in words]
        given = [word.replace("orders/3", "orders/0") for word in given]
        assert commands.run(*given).code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "--proven"], "log check takes no --proven"),
        (["changes", "--type", "topic"], "log changes takes no --type"),
        (["cat", "--partition", "0"], "log cat takes no --partition"),
        (["dump", "--at", "3"], "log dump takes no --at"),
        (["cat", "--csv"], "log cat prints JSON: leave out the other form"),
        (["explain", "orders/x"], "log explain needs TOPIC[/PARTITION]"),
        (["explain", "--topic", "a", "--broker", "1"], "log explain needs TOPIC[/PARTITION]"),
        (["diff", "3", "soon"], "log diff: 'soon' is neither an offset nor a time"),
        (["dump", "--type", "99"], "types of records are 0 to 63, not 99"),
        (["dump", "--partition", "2147483648"], "--partition"),
        (["dump", "--batches", "--type", "topic"], "--batches shows all of them"),
        (["dump", "--since", "9999"], "offset 9999 is not in the log: the log has the offsets 0"),
    ],
)
def test_words_that_contradict_each_other_are_one_line(words: list[str], said: str) -> None:
    word, *rest = words
    done = log(word, STATIC, *rest)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err
