"""The tree of a state has the paths of Kafka's own shell, and says which record made it so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import commands
import pytest
from kraft_logs import GOLDEN, LOGS, Made

from rdmeta.generate.logs import Log

STATIC = GOLDEN / "4.3.0"


def tree(word: str, *words: Any) -> commands.Done:
    return commands.run("log", word, *map(str, words))


def names(*words: Any) -> list[str]:
    return tree("ls", *words).out.splitlines()


def leaf(path: str, *words: Any) -> Any:
    return json.loads(tree("cat", STATIC, path, *words).out)


@pytest.mark.parametrize("made", LOGS, ids=lambda made: str(made.name))
def test_the_paths_are_those_of_kafkas_shell(made: Made) -> None:
    paths = tree("find", GOLDEN / made.name).out.splitlines()
    for wanted in (
        "/image/cluster/brokers/1",
        "/image/cluster/controllers/3",
        "/image/topics/byName/orders/3",
        "/image/features/metadataVersion",
        "/image/configs/TOPIC:orders/min.insync.replicas",
        "/image/configs/BROKER/log.retention.ms",
        "/image/configs/BROKER:2/listener.name.plaintext.ssl.key.password",
        "/image/clientQuotas/user(ann)/producer_byte_rate",
        "/image/producerIds/nextProducerId",
        "/image/scram/SCRAM-SHA-256/ann",
    ):
        assert wanted in paths
    assert any(path.startswith("/image/acls/") for path in paths)
    assert ("/image/other/voters/0" in paths) == made.has_dynamic_quorum
    assert len(paths) == len(set(paths))


def test_ls_lists_what_is_below_and_takes_patterns() -> None:
    assert names(STATIC, "/image/topics/byName") == ["audit", "gone", "orders", "risky"]
    assert names(STATIC, "/image/topics/byName/o*") == ["0", "1", "2", "3"]
    assert names(STATIC, "/image/topics/byName/orders/[02]") == [
        f"/image/topics/byName/orders/{partition}" for partition in (0, 2)
    ]
    ids = names(STATIC, "/image/topics/byId")
    assert len(ids) == 4
    assert names(STATIC, f"/image/topics/byId/{ids[0]}") == ["0"]


def test_cat_is_json_with_the_record_that_made_it_so() -> None:
    found = leaf("/image/topics/byName/orders/3")
    assert (found["leader"], found["replicas"], found["partition_epoch"]) == (2, [2, 1, 3], 6)
    assert found["provenance"] == {
        "offset": 136, "epoch": 6, "time": "2026-11-26T06:10:29.143Z", "at_or_before": False,
    }  # fmt: skip
    assert leaf("/image/cluster/brokers/2")["epoch"] == 90
    setting = leaf("/image/configs/TOPIC:orders/min.insync.replicas")
    assert (setting["value"], setting["provenance"]["at_or_before"]) == ("2", True)
    assert list(leaf("/image/features")["finalized_group.version"]) == [
        "name", "featureLevel", "provenance",
    ]  # fmt: skip


def test_a_state_is_one_of_the_past() -> None:
    assert names(STATIC, "/image/topics/byName", "--at", "30") == ["orders"]
    at = ("--at", "2026-11-26T06:09:30Z")
    assert leaf("/image/topics/byName/risky/0", *at)["isr"] == [1]
    assert leaf("/image/topics/byName/risky/0", "--at", "88")["leader"] is None
    assert leaf("/image/provenance", "--at", "88")["offset"] == 88


def test_tree_prints_all_below_with_the_values() -> None:
    lines = tree("tree", STATIC, "/image/configs/TOPIC:orders").out.splitlines()
    assert lines[0] == "/image/configs/TOPIC:orders"
    assert lines[1].startswith("  min.insync.replicas: {")


def test_json_and_csv_have_the_same_paths() -> None:
    found = commands.checked_json(tree("find", STATIC, "/image/acls", "--json").out)["paths"]
    assert tree("find", STATIC, "/image/acls", "--csv").out.splitlines() == ["path", *found]
    whole = commands.checked_json(tree("tree", STATIC, "/image/acls", "--json").out)
    assert (whole["state"]["offset"], whole["state"]["proven"]) == (140, True)
    assert list(whole["nodes"][0]["value"]) == [path.rpartition("/")[2] for path in found[1:]]


def test_tokens_are_told_apart_by_numbers(tmp_path: Path) -> None:
    log = Log()
    token: dict[str, Any] = {"owner": "User:a", "requester": "User:a", "renewers": []}
    token |= dict.fromkeys(("issueTimestamp", "maxTimestamp", "expirationTimestamp"), 1)
    log.append(*(("DELEGATION_TOKEN_RECORD", 0, {**token, "tokenId": n}) for n in ("a", "b")))
    (tmp_path / log.name).write_bytes(bytes(log.data))
    assert names(tmp_path, "/image/delegationToken") == ["0", "1"]


def test_a_name_does_not_forge_a_line(tmp_path: Path) -> None:
    log = Log()
    setting = {"resourceType": 4, "resourceName": "1", "name": "a\n\x1bb", "value": "1"}
    log.append(("CONFIG_RECORD", 0, setting))
    (tmp_path / log.name).write_bytes(bytes(log.data))
    assert names(tmp_path, "/image/configs/BROKER:1") == ["a\\n\\x1bb"]
    for word in ("tree", "find"):
        assert "\\n\\x1bb" in tree(word, tmp_path).out


def test_a_path_that_is_not_there_is_unmet() -> None:
    done = tree("cat", STATIC, "/image/topics/byName/nix")
    assert (done.code, done.out) == (1, "")
    assert done.err == "rdmeta: there is no /image/topics/byName/nix in the state\n"
