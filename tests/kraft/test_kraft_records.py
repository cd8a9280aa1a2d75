"""The records of the tests are those of Kafka, byte by byte and field by field."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kraft_frames import FRAMES
from kraft_logs import GOLDEN, LOG, LOGS
from kraft_records import Batch, batches

from rdmeta.generate.logs import (
    SCHEMAS,
    Log,
    batch_of,
    control_of,
    crc32c,
    snapshot,
    uuid_text,
    value_of,
    varint,
)

FILES = sorted(GOLDEN.glob(f"*/n*/{LOG}/*.log")) + sorted(GOLDEN.glob(f"*/n*/{LOG}/*.checkpoint"))


def encoded(batch: Batch) -> bytes:
    """Returns a batch that was read, as the encoder writes it."""
    values: list[tuple[bytes | None, bytes]] = [
        control_of(record.name, record.data)
        if record.is_control
        else (None, value_of(record.name, record.version, record.data))
        for record in batch.records
    ]
    return batch_of(values, batch.base, batch.epoch, batch.time_ms, batch.is_control)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(GOLDEN)))
def test_what_kafka_wrote_is_read_and_written_as_it_was(file: Path) -> None:
    data = file.read_bytes()
    found = list(batches(data))
    assert found[-1].end == len(data)
    for batch in found:
        assert encoded(batch) == data[batch.begin : batch.end]


def dumped(text: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yields the file, the offset and the payload of each record that DumpLogSegments prints."""
    file = ""
    for line in text.splitlines():
        if match := re.match(r"Dumping (\S+)", line):
            file = Path(match[1]).name
        elif match := re.match(r"\| offset: (\d+) .* payload: (.*)", line):
            yield file, int(match[1]), json.loads(match[2])


@pytest.mark.parametrize("name", [*(made.name for made in LOGS), FRAMES])
def test_each_field_is_as_dump_log_segments_prints_it(name: str) -> None:
    folder = GOLDEN / name
    dump = gzip.decompress((folder / "dump.txt.gz").read_bytes()).decode()
    found = {
        (file.name, record.offset): record
        for file in (folder / "n1" / LOG).glob("*-*.checkpoint")
        for batch in batches(file.read_bytes())
        for record in batch.records
    }
    segment = f"{0:020d}.log"
    log = (folder / "n1" / LOG / segment).read_bytes()
    of_log = (record for batch in batches(log) for record in batch.records)
    found |= {(segment, record.offset): record for record in of_log}
    printed = list(dumped(dump))
    for file, offset, payload in printed:
        record = found[file, offset]
        assert payload == {"type": record.name, "version": record.version, "data": record.data}
    assert len(printed) > (15 if name == FRAMES else 100)


@pytest.mark.parametrize(
    ("data", "crc"),
    [(b"", 0), (b"123456789", 0xE3069283), (bytes(32), 0x8A9136AA)],  # RFC 3720, B.4
)
def test_the_checksum_is_castagnolis(data: bytes, crc: int) -> None:
    assert crc32c(data) == crc


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_type_can_be_written_and_read(name: str) -> None:
    """Also those that no golden log has."""
    schema = SCHEMAS[name]
    for version in range(schema.last + 1):
        data = {f.name: sample(f, version) for f in schema.fields if f.since <= version}
        log = Log()
        log.append((name, version, data))
        (batch,) = batches(bytes(log.data))
        (record,) = batch.records
        assert (record.name, record.version, record.data) == (name, version, data)


def sample(field: Any, version: int) -> Any:
    """Returns a value of a field that is not its default."""
    if field.is_array:
        one = field._replace(is_array=False)
        return [sample(one, version), sample(one, version)]
    if field.inner:
        return {f.name: sample(f, version) for f in field.inner if f.since <= version}
    values: dict[str, Any] = {
        "str": "größe", "uuid": uuid_text(7), "bytes": "AAEC", "bool": True, "f64": 1.5,
    }  # fmt: skip
    return values.get(field.type, 77)


def test_null_and_empty_and_defaults_are_not_the_same() -> None:
    change = {"partitionId": 0, "topicId": uuid_text(1)}
    others: list[dict[str, Any]] = [{}, {"isr": []}, {"isr": [300]}, {"leader": -1}]
    for more in others:
        log = Log()
        log.append(("PARTITION_CHANGE_RECORD", 2, change | more))
        ((record,),) = ((batch.records) for batch in batches(bytes(log.data)))
        assert record.data == change | more
    with pytest.raises(ValueError, match="directories"):
        value_of("PARTITION_CHANGE_RECORD", 0, change | {"directories": []})


def test_a_damaged_batch_is_none() -> None:
    log = Log()
    log.lead(1, 2)
    for place in (16, 17, 30, len(log.data) - 1):
        damaged = bytearray(log.data)
        damaged[place] ^= 1
        with pytest.raises(ValueError, match="bad batch"):
            list(batches(bytes(damaged)))
    with pytest.raises(ValueError, match="no whole batch"):
        list(batches(bytes(log.data[:-1])))


def test_varints_are_zig_zag() -> None:
    assert [varint(n) for n in (0, -1, 1, 63, 64)] == [b"\0", b"\1", b"\2", b"\x7e", b"\x80\1"]


def test_a_snapshot_begins_with_its_header_and_ends_with_its_footer() -> None:
    data = snapshot([("NO_OP_RECORD", 0, {})] * 5, epoch=3, last_ms=99, per_batch=2)
    found = list(batches(data))
    assert [len(batch.records) for batch in found] == [1, 2, 2, 1, 1]
    assert found[0].records[0].data == {"version": 0, "lastContainedLogTimestamp": 99}
    assert found[-1].records[0].name == "SNAPSHOT_FOOTER"
    assert [record.offset for batch in found for record in batch.records] == list(range(7))
