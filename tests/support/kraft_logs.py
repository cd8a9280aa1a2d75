"""Makes small metadata logs on Apache Kafka, with what DumpLogSegments says of each file.

    python tests/support/kraft_logs.py           # tests/golden/kraft, anew: some 4 minutes
    make("4.3.0", directory)                     # one of them

The golden logs have all kinds of events that three nodes make in a minute. Each folder has

    n1 n2 n3               the directories of three controllers, after all were killed
      meta.properties
      __cluster_metadata-0   segments, snapshots, quorum-state, leader-epoch-checkpoint
    dump.txt.gz            DumpLogSegments of each log and snapshot of node 1

Their secrets are marked: SECRETS and credential_keys().
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import admin
from confluent_kafka.cimpl import Producer
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient
from kraft_records import batches
from marked_secrets import Secrets
from real_kafka import START_S, RealKafka

# Its types do not export what it has.
api: Any = admin
GOLDEN = Path(__file__).resolve().parents[1] / "golden/kraft"
LOG = "__cluster_metadata-0"

PASSWORD, SALT = b"m4rked-pass-word", b"m4rked-salt-bytes"
ITERATIONS = 4096
SECRETS = {
    "a salt": SALT.decode(),
    "a key's password": "m4rked-key-of-a-store",
    "a token's id": "m4rked-token",
}


def credential_keys() -> dict[str, bytes]:
    """Returns the keys of the user in the logs, as RFC 5802 derives them."""
    salted = hashlib.pbkdf2_hmac("sha256", PASSWORD, SALT, ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return {
        "salt": SALT,
        "storedKey": hashlib.sha256(client_key).digest(),
        "serverKey": hmac.digest(salted, b"Server Key", "sha256"),
    }


def secrets_of_logs() -> Secrets:
    """Returns what no output about a golden log may show."""
    found = Secrets()
    for name, secret in SECRETS.items():
        found.add(name, secret)
    for name, key in credential_keys().items():
        found.add(f"{name} in base64", base64.b64encode(key).decode())
        found.add(f"{name} in hexadecimal", key.hex())
    return found


class Made(NamedTuple):
    """A golden log: its folder, its Kafka, and the kind of its quorum."""

    name: str
    version: str
    has_dynamic_quorum: bool


LOGS = (
    Made("4.3.0", "4.3.0", False),
    Made("4.3.0-dynamic", "4.3.0", True),
    Made("3.9.1", "3.9.1", False),
)
# Its leader's copy has a tail that never committed.
DIVERGED = Made("4.3.0-diverged", "4.3.0", False)
RETAINED = "4.3.0-retained"


class _Events:
    """What is done to a cluster so that its log has records of all kinds."""

    def __init__(self, kafka: RealKafka) -> None:
        self.kafka = kafka
        self.admin: Any = kafka.admin

    def topics_and_configurations(self) -> None:
        create = self.kafka.create
        create("orders", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], {"min.insync.replicas": "2"})
        create("audit", [[1, 2]], {"retention.ms": "60000", "cleanup.policy": "delete"})
        create("risky", [[1, 2]], {"unclean.leader.election.enable": "true"})
        create("gone", [[3, 1]], {"retention.ms": "1000"})
        self._alter(api.ResourceType.TOPIC, "audit", retention_ms=None, segment_bytes="1048576")
        password = {"listener_name_plaintext_ssl_key_password": SECRETS["a key's password"]}
        self._alter(api.ResourceType.BROKER, "2", **password)
        self.admin.create_partitions(
            [api.NewPartitions("orders", 4, replica_assignment=[[2, 1, 3]])]
        )["orders"].result(30)
        self.kafka.until_in_sync("orders")

    def _alter(self, kind: Any, name: str, **values: str | None) -> None:
        resource = api.ConfigResource(kind, name)
        for key, value in values.items():
            operation = api.AlterConfigOpType.DELETE if value is None else api.AlterConfigOpType.SET
            entry = api.ConfigEntry(
                key.replace("_", "."), value or "", incremental_operation=operation
            )
            resource.add_incremental_config(entry)
        self.admin.incremental_alter_configs([resource])[resource].result(30)

    def access(self) -> None:
        what = (api.ResourceType.TOPIC, "orders", api.ResourcePatternType.PREFIXED)
        may = ("*", api.AclOperation.READ, api.AclPermissionType.ALLOW)
        given = [api.AclBinding(*what, f"User:{user}", *may) for user in ("ann", "ben")]
        for created in self.admin.create_acls(given).values():
            created.result(30)
        wanted = api.AclBindingFilter(*what, "User:ben", *may)
        for deleted in self.admin.delete_acls([wanted]).values():
            deleted.result(30)

    def credentials(self) -> None:
        info = api.ScramCredentialInfo(api.ScramMechanism.SCRAM_SHA_256, ITERATIONS)
        given = [
            api.UserScramCredentialUpsertion(user, info, PASSWORD, SALT) for user in ("ann", "bo")
        ]
        for done in self.admin.alter_user_scram_credentials(given).values():
            done.result(30)
        gone = api.UserScramCredentialDeletion("bo", api.ScramMechanism.SCRAM_SHA_256)
        for done in self.admin.alter_user_scram_credentials([gone]).values():
            done.result(30)

    def quotas_and_defaults(self) -> None:
        user, words = ("--entity-type", "users"), ("--alter", "--bootstrap-server")
        for what in (
            (*user, "--entity-name", "ann", "--add-config", "producer_byte_rate=1024"),
            (*user, "--entity-default", "--add-config", "request_percentage=12.5"),
            (*user, "--entity-default", "--delete-config", "request_percentage"),
            ("--entity-type", "brokers", "--entity-default", "--add-config", "log.retention.ms=5"),
        ):
            run(self.kafka, "kafka.admin.ConfigCommand", *words, self.kafka.bootstrap, *what)

    def producer_ids(self) -> None:
        producer = Producer(
            {"bootstrap.servers": self.kafka.bootstrap, "enable.idempotence": True, "log_level": 0}
        )
        producer.produce("orders", b"an order")
        if producer.flush(30):
            raise RuntimeError("an order was not acknowledged")

    def reassignment(self) -> None:
        client = KafkaAdminClient(bootstrap_servers=self.kafka.bootstrap)
        try:
            client.alter_partition_reassignments({TopicPartition("audit", 0): [2, 3]})
        finally:
            client.close()
        self._until("audit", 0, lambda p: [*p.replicas] == [2, 3] and len(p.isr) == 2)

    def deletion(self) -> None:
        for deleted in self.admin.delete_topics(["gone"]).values():
            deleted.result(30)
        self.kafka.create("gone", [[1, 3]])

    def failures(self) -> None:
        """Kills two brokers so that one becomes leader uncleanly; then stops one in good order."""
        kafka = self.kafka
        kafka.kill(2)
        self._until("risky", 0, lambda p: [*p.isr] == [1])
        kafka.kill(1)
        kafka.start(2)
        self._until("risky", 0, lambda p: p.leader == 2)
        kafka.start(1)
        kafka.until_in_sync()
        kafka.stop(3)
        self._until("orders", 2, lambda p: len(p.isr) == 2)
        kafka.start(3)
        kafka.until_in_sync()

    def _until(self, topic: str, partition: int, holds: Callable[..., bool]) -> None:
        def is_so() -> bool:
            node = max(self.kafka.running)
            return holds(self.kafka.asked(node, [topic]).topic(topic).partitions[partition])

        self.kafka.until(is_so, f"{topic}-{partition} changes")


def run(kafka: RealKafka, *words: str | Path) -> str:
    """Runs one of Kafka's commands; returns what it prints. Raises if it fails."""
    options = [
        "-Xmx200m",
        "-XX:TieredStopAtLevel=1",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    ]
    command = ["java", *options, "-cp", kafka.classpath, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=START_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def dump(kafka: RealKafka, files: Sequence[Path]) -> str:
    """Returns what DumpLogSegments prints for each of the files."""
    package = "kafka" if kafka.version.startswith("3.") else "org.apache.kafka"
    words = ("--cluster-metadata-decoder", "--files", ",".join(map(str, files)))
    return run(kafka, f"{package}.tools.DumpLogSegments", *words)


def write_dump(target: Path, text: str) -> None:
    """Writes what DumpLogSegments prints of the log of node 1."""
    with gzip.GzipFile(target / "dump.txt.gz", "wb", mtime=0) as out:
        out.write(text.replace(str(target / "n1" / LOG), LOG).encode())


def make(made: Made, target: Path) -> None:
    """Makes one of the logs in a new directory."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
        "metadata.log.max.record.bytes.between.snapshots": 4000,
        "metadata.max.idle.interval.ms": 4000,
    }
    with tempfile.TemporaryDirectory() as directory:
        kafka = RealKafka(
            made.version, 3, Path(directory), settings=settings,
            has_dynamic_quorum=made.has_dynamic_quorum,
        )  # fmt: skip
        with kafka:
            events = _Events(kafka)
            events.topics_and_configurations()
            events.access()
            events.credentials()
            events.quotas_and_defaults()
            events.producer_ids()
            events.reassignment()
            events.deletion()
            events.failures()
        for node in kafka.nodes:
            copy_node(Path(directory, f"n{node}"), target / f"n{node}")
        log = target / "n1" / LOG
        write_dump(target, dump(kafka, sorted([*log.glob("*.log"), *log.glob("*.checkpoint")])))


def make_diverged(target: Path) -> None:
    """Makes logs of which one has a tail that never committed.

    Both followers are paused while the leader appends; then it is killed, and they go on.
    """
    with tempfile.TemporaryDirectory() as directory:
        with RealKafka(DIVERGED.version, 3, Path(directory)) as kafka:
            kafka.create("orders", [[1, 2, 3]])
            client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
            (topic,) = client.describe_metadata_quorum()["topics"]
            leader = topic["partitions"][0]["leader_id"]
            client.close()
            followers = [node for node in kafka.nodes if node != leader]
            log = Path(directory, f"n{leader}", LOG, f"{0:020d}.log")
            for node in followers:
                kafka.freeze(node)
            # By now the leader has answered what they had asked before.
            time.sleep(0.8)
            alone: Any = api.AdminClient({"bootstrap.servers": kafka.address(leader)})
            alone.create_topics([api.NewTopic("never", 2, 1)], request_timeout=5)
            kafka.until(lambda: b"never" in log.read_bytes(), "the leader appends")
            kafka.kill(leader)
            for node in followers:
                kafka.thaw(node)
            kafka.until_up()
            kafka.create("after", [followers])
        for node in kafka.nodes:
            copy_node(Path(directory, f"n{node}"), target / f"n{node}")


def make_retained(target: Path) -> None:
    """Makes a log of which Kafka has deleted old segments; it looks for them once a minute."""
    settings = {
        "metadata.log.max.record.bytes.between.snapshots": 6000,
        "metadata.max.idle.interval.ms": 100,
        "internal.metadata.log.segment.bytes": 9000,
        "metadata.log.segment.ms": 5000,
        "metadata.max.retention.ms": 10_000,
        "metadata.max.retention.bytes": 30_000,
    }
    with tempfile.TemporaryDirectory() as directory:
        with RealKafka("4.3.0", 1, Path(directory), settings=settings) as kafka:
            kafka.create("orders", [[1]] * 4)
            first = Path(directory, "n1", LOG, f"{0:020d}.log")
            kafka.until(lambda: not first.exists(), "old segments are deleted", timeout=120)
            kafka.create("later", [[1]])
        copy_node(Path(directory, "n1"), target / "n1")


def kinds_missing(made: Made, directory: Path) -> list[str]:
    """Returns what a golden log should have and lacks."""
    log = directory / "n1" / LOG
    records = [
        record
        for batch in batches((log / f"{0:020d}.log").read_bytes())
        for record in batch.records
    ]
    wanted = {
        "LEADER_CHANGE", "REGISTER_BROKER_RECORD", "REGISTER_CONTROLLER_RECORD", "TOPIC_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD",
        "REMOVE_TOPIC_RECORD", "CONFIG_RECORD", "ACCESS_CONTROL_ENTRY_RECORD", "NO_OP_RECORD",
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", "USER_SCRAM_CREDENTIAL_RECORD", "PRODUCER_IDS_RECORD",
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD", "CLIENT_QUOTA_RECORD", "FEATURE_LEVEL_RECORD",
        *(("KRAFT_VERSION", "KRAFT_VOTERS") if made.has_dynamic_quorum else ()),
        *(("CLEAR_ELR_RECORD",) if made.version > "4" else ("ZK_MIGRATION_STATE_RECORD",)),
    }  # fmt: skip
    data = [record.data for record in records]
    events = {
        "a snapshot": any(log.glob("*-*.checkpoint")),
        "three elections": sum(record.name == "LEADER_CHANGE" for record in records) >= 3,
        "a fence": any(each.get("fenced") == 1 for each in data),
        "a shutdown": any(each.get("inControlledShutdown") == 1 for each in data),
        "an unclean election": any(each.get("leaderRecoveryState") == 1 for each in data),
        "a reassignment": any(each.get("addingReplicas") for each in data),
        "a deleted configuration": any(each.get("value", "") is None for each in data),
    }
    missing = wanted - {record.name for record in records}
    return [*sorted(missing), *(event for event, is_there in events.items() if not is_there)]


def copy_node(node: Path, target: Path) -> None:
    """Copies what a controller keeps of its metadata; not its index, and no broker's data."""
    (target / LOG).mkdir(parents=True)
    shutil.copyfile(node / "meta.properties", target / "meta.properties")
    for file in (node / LOG).iterdir():
        if file.suffix in (".log", ".checkpoint") or file.name in (
            "quorum-state",
            "leader-epoch-checkpoint",
        ):
            shutil.copyfile(file, target / LOG / file.name)


def main() -> None:
    for made in (*LOGS, DIVERGED):
        if len(sys.argv) > 1 and made.name not in sys.argv[1:]:
            continue
        shutil.rmtree(GOLDEN / made.name, ignore_errors=True)
        if made is DIVERGED:
            make_diverged(GOLDEN / made.name)
        else:
            make(made, GOLDEN / made.name)
    if not sys.argv[1:] or RETAINED in sys.argv:
        shutil.rmtree(GOLDEN / RETAINED, ignore_errors=True)
        make_retained(GOLDEN / RETAINED)


if __name__ == "__main__":
    main()
