"""A metadata log of records that no golden cluster wrote, as frames of Kafka's own classes.

    PYTHONPATH=tests/support:tests/net python tests/support/kraft_frames.py    # makes it anew

Kafka's classes take the records as JSON (KraftFrames.java); so they prove the tests' encoder, too.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from kraft_logs import GOLDEN, LOG, SECRETS, dump, write_dump
from kraft_records import batches
from real_kafka import RealKafka

from rdmeta.generate.logs import SCHEMAS, Given, Log, uuid_text

FRAMES = "4.3.0-frames"
_IDS = {"topicId": uuid_text(7), "partitionId": 0}
_FIRST = SECRETS["a token's id"]
_SECOND = f"{_FIRST}-2"
_LISTS = {"replicas": [1, 2], "isr": [1, 2], "removingReplicas": [], "addingReplicas": []}


def _broker(broker: int, epoch: int) -> Given:
    endpoint = {"name": "PLAINTEXT", "host": "h", "port": 9092, "securityProtocol": 0}
    data = {"brokerId": broker, "incarnationId": uuid_text(broker), "brokerEpoch": epoch}
    rest = {"endPoints": [endpoint], "features": [], "rack": None, "fenced": True}
    return "REGISTER_BROKER_RECORD", 0, {**data, **rest}


def _token(token: str) -> Given:
    who = {"owner": "User:ann", "requester": "User:bo", "renewers": ["User:cy"], "tokenId": token}
    times = {"issueTimestamp": 1, "maxTimestamp": 3, "expirationTimestamp": 2}
    return "DELEGATION_TOKEN_RECORD", 0, {**who, **times}


def rare() -> Log:
    """Returns the log as the tests' encoder writes it."""
    log = Log(epoch=1)
    log.lead(1, 1)
    log.append(_broker(1, 1), _broker(2, 2))
    log.append(*(("UNFENCE_BROKER_RECORD", 0, {"id": id, "epoch": id}) for id in (1, 2)))
    begin: Given = ("BEGIN_TRANSACTION_RECORD", 0, {"name": "a topic"})
    partition = {**_IDS, **_LISTS, "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0}
    log.append(begin, ("TOPIC_RECORD", 0, {"name": "orders", "topicId": uuid_text(7)}))
    log.append(("PARTITION_RECORD", 0, partition), ("END_TRANSACTION_RECORD", 0, {}))
    log.append(begin, ("TOPIC_RECORD", 0, {"name": "never", "topicId": uuid_text(8)}))
    log.append(("ABORT_TRANSACTION_RECORD", 0, {"reason": "the controller failed"}))
    log.append(_token(_FIRST), _token(_SECOND))
    log.append(
        ("PARTITION_CHANGE_RECORD", 2, {**_IDS, "isr": [1], "eligibleLeaderReplicas": [2]}),
        ("FENCE_BROKER_RECORD", 0, {"id": 2, "epoch": 2}),
    )
    log.append(
        ("PARTITION_CHANGE_RECORD", 0, {**_IDS, "leader": 1, "replicas": [1]}),
        ("UNREGISTER_BROKER_RECORD", 0, {"brokerId": 2, "brokerEpoch": 2}),
    )
    gone = {"tokenId": _SECOND}
    log.append(
        ("REMOVE_DELEGATION_TOKEN_RECORD", 0, gone), ("CLEAR_ELR_RECORD", 0, {"topicName": ""})
    )
    return log


def by_kafka(data: bytes, jars: str) -> bytes:
    """Returns batches as Kafka's classes write them."""
    given: list[dict[str, Any]] = []
    for batch in batches(data):
        records = [
            {"key": None if batch.is_control else SCHEMAS[record.name].key, **record._asdict()}
            for record in batch.records
        ]
        given.append({**batch._asdict(), "records": records})
    words = ["java", "-XX:TieredStopAtLevel=1", "-cp", jars]
    program = str(Path(__file__).with_name("KraftFrames.java"))
    done = subprocess.run(
        [*words, program], input=json.dumps(given).encode(), capture_output=True, check=True
    )
    return done.stdout


def make_frames(target: Path) -> None:
    """Makes the golden log of such frames, with what DumpLogSegments says of it."""
    log = rare()
    with tempfile.TemporaryDirectory() as directory:
        kafka = RealKafka("4.3.0", 1, Path(directory))
    folder = target / "n1" / LOG
    folder.mkdir(parents=True)
    (folder / log.name).write_bytes(by_kafka(bytes(log.data), kafka.classpath))
    write_dump(target, dump(kafka, [folder / log.name]))


if __name__ == "__main__":
    shutil.rmtree(GOLDEN / FRAMES, ignore_errors=True)
    make_frames(GOLDEN / FRAMES)
