"""Records of the metadata log read in Python, without rdmeta's reader of them.

    [record for batch in batches(log.data) for record in batch.records]

The fields of a record are as DumpLogSegments prints them, by the schemas of `rdmeta.generate.logs`,
which writes such records.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rdmeta.generate.logs import CONTROLS, FIXED, SCHEMAS, Field, crc32c, uuid_text

_NAMES = {schema.key: name for name, schema in SCHEMAS.items()}
_CONTROL_NAMES = {schema.key: name for name, schema in CONTROLS.items()}


class Reader:
    """Reads values from bytes; raises ValueError where they end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self.data) - self.at:
            raise ValueError(f"{size} bytes at {self.at} of {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def varint(self) -> int:
        value = self.uvarint()
        return (value >> 1) ^ -(value & 1)

    def fixed(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def value(self, field: Field, version: int) -> Any:
        if field.is_array:
            count = self.uvarint() - 1
            one = field._replace(is_array=False)
            return None if count < 0 else [self.value(one, version) for _ in range(count)]
        if field.inner:
            return self.fields(field.inner, version)
        if field.type in FIXED:
            return self.fixed(FIXED[field.type])
        if field.type == "uuid":
            return uuid_text(int.from_bytes(self.take(16), "big"))
        size = self.uvarint() - 1
        if size < 0:
            return None
        data = self.take(size)
        return base64.b64encode(data).decode() if field.type == "bytes" else data.decode()

    def fields(self, fields: Sequence[Field], version: int) -> dict[str, Any]:
        known = [field for field in fields if field.since <= version]
        found = {f.name: self.value(f, version) for f in known if f.tag is None}
        tagged = {field.tag: field for field in known if field.tag is not None}
        for _ in range(self.uvarint()):
            tag, size = self.uvarint(), self.uvarint()
            if tag in tagged:
                end = self.at + size
                found[tagged[tag].name] = self.value(tagged[tag], version)
                if self.at != end:
                    raise ValueError(f"tag {tag} ends at {self.at}, not {end}")
            else:
                self.take(size)
        return found


class Record(NamedTuple):
    """A record that was read; one of a control batch has no frame."""

    offset: int
    epoch: int
    time_ms: int
    name: str
    version: int
    data: dict[str, Any]
    is_control: bool = False


class Batch(NamedTuple):
    """A batch that was read: its place in the bytes, and its records."""

    begin: int
    end: int
    base: int
    last: int
    epoch: int
    time_ms: int
    is_control: bool
    records: tuple[Record, ...]


def batches(data: bytes) -> Iterator[Batch]:
    """Reads whole batches; ValueError for what is none."""
    at = 0
    while at < len(data):
        size = 12 + struct.unpack_from(">i", data, at + 8)[0]
        if size < 61 or at + size > len(data):
            raise ValueError(f"no whole batch at {at}")
        yield _batch(data[at : at + size], at)
        at += size


def _batch(data: bytes, begin: int) -> Batch:
    base, _, epoch, magic, crc = struct.unpack_from(">qiibI", data)
    attributes, last, first_ms, last_ms, *_, count = struct.unpack_from(">hiqqqhii", data, 21)
    if magic != 2 or crc32c(data[21:]) != crc:
        raise ValueError(f"bad batch at {begin}")
    is_control = bool(attributes & 0x20)
    reader = Reader(data)
    reader.at = 61
    records = tuple(_record(reader, base, epoch, first_ms, is_control) for _ in range(count))
    if reader.at != len(data):
        raise ValueError(f"bytes behind the records of the batch at {begin}")
    return Batch(
        begin, begin + len(data), base, base + last, epoch, last_ms, is_control, records
    )  # fmt: skip


def _record(reader: Reader, base: int, epoch: int, first_ms: int, is_control: bool) -> Record:
    end = reader.varint() + reader.at
    reader.take(1)
    time_ms, offset = first_ms + reader.varint(), base + reader.varint()
    key_size = reader.varint()
    key = reader.take(key_size) if key_size >= 0 else b""
    value = Reader(reader.take(reader.varint()))
    if reader.varint() or reader.at != end:
        raise ValueError(f"the record {offset} has headers, or another length")
    if is_control:
        name = _CONTROL_NAMES[struct.unpack(">hh", key)[1]]
        version = struct.unpack_from(">h", value.data)[0]
        data = value.fields(CONTROLS[name].fields, version)
    else:
        frame, kind, version = value.uvarint(), value.uvarint(), value.uvarint()
        if frame != 1:
            raise ValueError(f"frame version {frame}")
        name = _NAMES[kind]
        data = value.fields(SCHEMAS[name].fields, version)
    if value.at != len(value.data):
        raise ValueError(f"bytes behind the value of record {offset}")
    return Record(offset, epoch, time_ms, name, version, data, is_control)
