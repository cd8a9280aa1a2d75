"""The figures of metadata logs: decoded, replayed, as images, as Arrow, and printed."""

from __future__ import annotations

from collections.abc import Iterable

from bench.figure import PER_TOPIC, Figure, Goal, Job, Samples, Scale, count, number, series

# The goal of a replay beside the decoding, by the place of the number of partitions.
REPLAYS = (Goal(factor=3), Goal(factor=5))


def _figure(
    name: str, unit: str, job: Job, value: Samples, reference: tuple[Samples, str], goal: Goal
) -> Figure:
    return Figure("log", name, unit, job, value, *reference, goal)


def _replays(scale: Scale) -> Iterable[Figure]:
    records = count(scale.log_records)
    for partitions, goal in zip(scale.log_partitions, REPLAYS, strict=True):
        arguments = (str(partitions), str(scale.log_records), str(min(scale.rounds, 3)), "{seed}")
        job, of = Job("metadata_log", arguments), f"{count(partitions)} partitions"
        each = "ns/partition"
        decoding = series("decode"), "every field decoded, CRC checked"
        yield _figure(
            f"C {records} records decoded, every field, CRC checked, {of}",
            "ns/record", job, series("decode"), (series("crc"), "the CRC of the same bytes"),
            Goal(factor=6),
        )  # fmt: skip
        yield _figure(
            f"C {records} records replayed to a state of {of}",
            "ns/record", job, series("replay"), decoding, goal,
        )  # fmt: skip
        yield _figure(
            f"C a state of a log, {of}: memory", "bytes/partition", job,
            number("state_bytes", "partitions"),
            (number("snapshot_bytes", "partitions"), "Kafka's snapshot of it"), Goal(factor=1),
        )  # fmt: skip
        yield _figure(
            f"C a state of a log to an image, {of}", each, job, series("image"),
            (series("apply"), "applying a Metadata answer of the same facts"), Goal(factor=1.5),
        )  # fmt: skip


def _python(scale: Scale) -> Iterable[Figure]:
    partitions = scale.log_partitions[0]
    job = Job("log", ("to_arrow", f"--partitions={partitions}", f"--rounds={scale.rounds}"))
    yield _figure(
        f"changes of a log to Arrow, {count(partitions * (PER_TOPIC + 1) // PER_TOPIC)} rows",
        "ns/row", job, series("log"), (series("image"), "as many changes of an image"),
        Goal(factor=1.3),
    )  # fmt: skip
    rounds = f"--rounds={scale.rounds if scale.kills else 0}"
    job = Job("log", ("dump", f"--changes={scale.changes}", rounds))
    other = "kafka-dump-log"
    name = "rdmeta log dump --json into a file"
    yield _figure(
        f"{name}, {count(scale.changes)} records", "s", job, series("rdmeta"),
        (series("kafka"), other), Goal(factor=1 / 12),
    )  # fmt: skip
    yield _figure(
        f"{name}, a real log of 2 000 records", "s", job, series("rdmeta_real"),
        (series("kafka_real"), other), Goal(factor=1 / 4),
    )  # fmt: skip


PARTS = (_replays, _python)
