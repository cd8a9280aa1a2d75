"""Kafka's types in bytes, and the calls of the exchanges that a session runs by itself.

FieldReader reads an answer; a length that goes beyond its bytes is an error. Here is also what
writes the varints of requests.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator
from typing import NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from rdmeta.errors import MalformedError

_INT8 = struct.Struct(">b")
INT16 = struct.Struct(">h")
_UINT16 = struct.Struct(">H")
INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")

_T = TypeVar("_T")


class FieldReader:
    """Reads big-endian fields from the front of `data`.

    Strings and arrays are those of flexible versions (KIP-482), or, without `flexible`, of the
    older ones, which have no tagged fields. The methods raise MalformedError if a field goes beyond
    the end.
    """

    def __init__(
        self, data: bytes | memoryview, position: int = 0, *, flexible: bool = True
    ) -> None:
        self._data = data
        self._flexible = flexible
        self.position = position

    @property
    def left(self) -> int:
        """The number of bytes that are not read yet."""
        return len(self._data) - self.position

    def skip(self, length: int) -> None:
        """Skips `length` bytes."""
        if length > self.left:
            raise MalformedError(f"a field announces {length} bytes, and {self.left} are left")
        self.position += length

    def take(self, length: int) -> bytes:
        """Returns the next `length` bytes."""
        start = self.position
        self.skip(length)
        return bytes(self._data[start : self.position])

    def fields(self, layout: struct.Struct) -> tuple[int, ...]:
        """Returns one value for each field of `layout`."""
        start = self.position
        self.skip(layout.size)
        return layout.unpack_from(self._data, start)

    def int8(self) -> int:
        """Returns a signed 8-bit integer."""
        return self.fields(_INT8)[0]

    def int16(self) -> int:
        """Returns a signed 16-bit integer."""
        return self.fields(INT16)[0]

    def uint16(self) -> int:
        """Returns an unsigned 16-bit integer."""
        return self.fields(_UINT16)[0]

    def int32(self) -> int:
        """Returns a signed 32-bit integer."""
        return self.fields(INT32)[0]

    def int64(self) -> int:
        """Returns a signed 64-bit integer."""
        return self.fields(_INT64)[0]

    def uvarint(self) -> int:
        """Returns an unsigned varint of at most 32 bits."""
        value = 0
        for shift in range(0, 35, 7):
            start = self.position
            self.skip(1)
            value |= (self._data[start] & 0x7F) << shift
            if self._data[start] < 0x80 and value < 1 << 32:
                return value
        raise MalformedError("a varint has more than 32 bits")

    def uuid(self) -> UUID:
        """Returns a UUID, which may be zero."""
        return UUID(bytes=self.take(16))

    def optional_string(self) -> str | None:
        """Returns a string, None for a null one; bytes that are not UTF-8 become surrogates."""
        length = self.uvarint() - 1 if self._flexible else self.int16()
        if length == -1:
            return None
        if length < 0:
            raise MalformedError(f"a field announces {length} bytes")
        return self.take(length).decode("utf-8", "surrogateescape")

    def string(self) -> str:
        """Returns a string that may not be null."""
        value = self.optional_string()
        if value is None:
            raise MalformedError("a string that must not be null is null")
        return value

    def array(self, read: Callable[[FieldReader], _T]) -> tuple[_T, ...]:
        """Returns what `read` returns for each element of an array that may not be null."""
        count = self.uvarint() - 1 if self._flexible else self.int32()
        if not 0 <= count <= self.left:  # each element has at least one byte
            raise MalformedError(f"an array announces {count} elements in {self.left} bytes")
        return tuple(read(self) for _ in range(count))

    def skip_tags(self) -> None:
        """Skips a section of tagged fields (KIP-482), which only flexible versions have."""
        if not self._flexible:
            return
        for _ in range(self.uvarint()):
            self.uvarint()
            self.skip(self.uvarint())

    def end(self) -> None:
        """Raises MalformedError if bytes are left."""
        if self.left:
            raise MalformedError(f"{self.left} bytes follow the answer's last field")


def encode_uvarint(value: int) -> bytes:
    """Returns a number, 0 or above, as an unsigned varint."""
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


# The API key of a frame without a header: a SASL message of a broker before 1.0.
RAW = -1


class Call(NamedTuple):
    """A request: its API key, its version, and its body without the header."""

    api_key: int
    version: int
    body: bytes


Steps: TypeAlias = Generator[Call, bytes, float | None]
"""Exchanges in order: the generator yields a request and receives its answer's body.

It returns the seconds after which the broker wants the connection to log in again, None without a
limit.
"""
