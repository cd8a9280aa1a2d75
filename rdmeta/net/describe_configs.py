"""DescribeConfigs (API key 32), v1-v4: the configuration of topics (KIP-133, 226, 569).

Any broker answers for every topic, also for what the topic does not set itself: then the value is
the broker's, or Kafka's default.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from rdmeta.errors import Error, MalformedError, UnsupportedVersionError, from_code
from rdmeta.net.fields import INT16, INT32, FieldReader, encode_uvarint

DESCRIBE_CONFIGS = 32
LOWEST, HIGHEST = 1, 4

_FLEXIBLE = 4
_TOPIC = 2


class TopicConfig(NamedTuple):
    """The configuration of a topic: `values` has texts by key, None for a value that is secret.

    `error` says why there are none: TopicAuthorizationError without the right DESCRIBE_CONFIGS on
    the topic, UnknownTopicError, InvalidTopicError. It is None for a usable answer. A key that
    Kafka does not know is missing in `values`.
    """

    error: Error | None
    values: dict[str, str | None]


def encode_request(
    version: int, topics: Collection[str], keys: Collection[str] | None = None
) -> bytes:
    """Returns a request's body, for some keys of each topic; None stands for all keys.

    Raises ValueError for a text with more than 32 767 bytes, UnsupportedVersionError for an unknown
    version.
    """
    _check(version)
    flexible = version >= _FLEXIBLE
    tags = b"\0" if flexible else b""
    wanted = _null_array(flexible) if keys is None else _texts(list(keys), flexible)
    parts = [_count(len(topics), flexible)]
    for topic in topics:
        parts += (bytes([_TOPIC]), _text(topic, flexible), wanted, tags)
    parts.append(b"\0")  # no synonyms
    if version >= 3:
        parts.append(b"\0")  # no documentation
    return b"".join((*parts, tags))


def parse_response(body: bytes, version: int) -> dict[str, TopicConfig]:
    """Returns a parsed response's body: each topic's configuration, or its error, by name.

    Raises MalformedError, UnsupportedVersionError for an unknown version.
    """
    _check(version)
    reader = FieldReader(body, flexible=version >= _FLEXIBLE)
    reader.int32()  # throttle_time_ms
    found = dict(reader.array(lambda each: _result(each, version)))
    reader.skip_tags()
    reader.end()
    return found


def _result(reader: FieldReader, version: int) -> tuple[str, TopicConfig]:
    code, message, kind = reader.int16(), reader.optional_string(), reader.int8()
    if kind != _TOPIC:
        raise MalformedError(f"the answer has a resource of type {kind} instead of {_TOPIC}, topic")
    name = reader.string()
    values = dict(reader.array(lambda each: _value(each, version)))
    reader.skip_tags()
    return name, TopicConfig(from_code(code, message) if code else None, values)


def _value(reader: FieldReader, version: int) -> tuple[str, str | None]:
    key, value = reader.string(), reader.optional_string()
    reader.skip(3)  # read_only, config_source, is_sensitive
    reader.array(_skip_synonym)
    if version >= 3:
        reader.skip(1)  # config_type
        reader.optional_string()  # documentation
    reader.skip_tags()
    return key, value


def _skip_synonym(reader: FieldReader) -> None:
    reader.string()
    reader.optional_string()
    reader.skip(1)  # source
    reader.skip_tags()


def _count(count: int, flexible: bool) -> bytes:
    """Returns the number of elements of an array."""
    return encode_uvarint(count + 1) if flexible else INT32.pack(count)


def _null_array(flexible: bool) -> bytes:
    return b"\0" if flexible else INT32.pack(-1)


def _texts(texts: Sequence[str], flexible: bool) -> bytes:
    return b"".join((_count(len(texts), flexible), *(_text(each, flexible) for each in texts)))


def _text(text: str, flexible: bool) -> bytes:
    raw = text.encode("utf-8", "surrogateescape")
    if len(raw) > 32767:
        raise ValueError(f"a name or key has {len(raw)} bytes, the maximum is 32767")
    return (encode_uvarint(len(raw) + 1) if flexible else INT16.pack(len(raw))) + raw


def _check(version: int) -> None:
    if not LOWEST <= version <= HIGHEST:
        raise UnsupportedVersionError(
            f"DescribeConfigs v{version} is unknown; v{LOWEST}-v{HIGHEST} are known"
        )
