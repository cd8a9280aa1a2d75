"""The ApiVersions exchange (API key 18), v0-v3: a broker lists the versions of each API it speaks.

Versions above 3 add nothing that this package uses, and every broker since 2.4 speaks 3.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from rdmeta._version import __version__
from rdmeta.errors import MalformedError
from rdmeta.net.fields import FieldReader

__all__ = ["API_VERSIONS", "HIGHEST", "ApiVersions", "encode_request", "parse_response"]

API_VERSIONS = 18
HIGHEST = 3
UNSUPPORTED_VERSION = 35

_RANGE = struct.Struct(">hhh")


class ApiVersions(NamedTuple):
    """A broker's answer: `ranges` maps an API key to (lowest, highest) version.

    `mock` marks librdkafka's mock broker, which gives an answer that no other broker gives.
    """

    error: int
    ranges: dict[int, tuple[int, int]]
    mock: bool = False


def encode_request(version: int) -> bytes:
    """Returns a request's body; from v3 on it names this software (KIP-511)."""
    if version < 3:
        return b""
    name, number = b"rdmeta", _legal(__version__).encode()
    return b"".join((bytes([len(name) + 1]), name, bytes([len(number) + 1]), number, b"\0"))


def _legal(version: str) -> str:
    """Returns a version that brokers accept: [a-zA-Z0-9]([a-zA-Z0-9\\-.]*[a-zA-Z0-9])?."""
    return re.sub(r"[^a-zA-Z0-9.]", "-", version).strip("-.")[:100]


def parse_response(body: bytes, version: int) -> ApiVersions:
    """Returns a parsed response's body; raises MalformedError.

    A broker answers a version that it does not speak with UNSUPPORTED_VERSION in the layout of v0.
    That answer has the range of ApiVersions itself (KIP-511; before 2.4 it has none).
    """
    reader = FieldReader(body)
    error = reader.int16()
    if error == UNSUPPORTED_VERSION:
        if _is_mock(body):
            return ApiVersions(error, {API_VERSIONS: _range(FieldReader(body, 3))[1]}, mock=True)
        version = 0
    count = reader.uvarint() - 1 if version >= 3 else reader.int32()
    if not 0 <= count * _RANGE.size <= reader.left:
        raise MalformedError(f"the answer announces {count} API versions in {reader.left} bytes")
    ranges = {}
    for _ in range(count):
        key, ranges[key] = _range(reader)
        if version >= 3:
            reader.skip_tags()
    return ApiVersions(error, ranges)


def _is_mock(body: bytes) -> bool:
    """Returns whether librdkafka's mock broker sent this refusal.

    The mock counts its one API in one byte, where v0 has four, and adds the throttle time of v1.
    """
    return len(body) == 13 and body[2:5] == b"\1\0\x12"


def _range(reader: FieldReader) -> tuple[int, tuple[int, int]]:
    key, lowest, highest = reader.fields(_RANGE)
    return key, (lowest, highest)
