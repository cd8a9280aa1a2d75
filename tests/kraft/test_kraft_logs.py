"""The golden logs have what tests need, are small, and show no password."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path

import pytest
from kraft_logs import GOLDEN, LOG, LOGS, PASSWORD, SECRETS, Made, credential_keys, kinds_missing
from kraft_records import batches

from rdmeta._core import kraft_types

each_log = pytest.mark.parametrize("made", LOGS, ids=lambda made: str(made.name))


@each_log
def test_a_golden_log_has_all_kinds_of_events(made: Made) -> None:
    assert kinds_missing(made, GOLDEN / made.name) == []


def test_the_golden_logs_have_a_record_of_each_type() -> None:
    found = {
        record.name
        for path in GOLDEN.glob(f"*/n1/{LOG}/*.[lc]*")
        for batch in batches(path.read_bytes())
        for record in batch.records
    }
    assert set(kraft_types()) - found == {"ACCESS_CONTROL_RECORD"}  # of Kafka 3.3 alone


def test_golden_logs_are_small() -> None:
    assert sum(file.stat().st_size for file in GOLDEN.rglob("*") if file.is_file()) < 300_000


@each_log
def test_the_secrets_are_the_marked_ones(made: Made) -> None:
    data = (GOLDEN / made.name / "n1" / LOG / f"{0:020d}.log").read_bytes()
    assert PASSWORD not in data
    assert SECRETS["a key's password"].encode() in data
    found = [
        {key: base64.b64decode(record.data[key]) for key in credential_keys()}
        for batch in batches(data)
        for record in batch.records
        if record.name == "USER_SCRAM_CREDENTIAL_RECORD"
    ]
    assert found == [credential_keys()] * 2


@each_log
def test_the_nodes_have_copies_of_one_log(made: Made) -> None:
    logs = [
        (GOLDEN / made.name / f"n{node}" / LOG / f"{0:020d}.log").read_bytes() for node in (1, 2, 3)
    ]
    shortest = min(logs, key=len)
    assert all(log.startswith(shortest) for log in logs)


@each_log
def test_quorum_states_are_of_the_versions_that_kafka_writes(made: Made) -> None:
    states = [json.loads(file.read_text()) for file in nodes(made, "quorum-state")]
    assert Counter(state["data_version"] for state in states) == {int(made.has_dynamic_quorum): 3}
    assert len({state["leaderEpoch"] for state in states}) == 1


def nodes(made: Made, name: str) -> list[Path]:
    return sorted(GOLDEN.glob(f"{made.name}/n*/{LOG}/{name}"))
