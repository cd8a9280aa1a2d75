"""Makes answers of many partitions fast: it encodes one topic, and copies it under many names."""

from __future__ import annotations

from frames import P, T, response

_NAME = "topic-@@@@@@"


def large_name(i: int) -> str:
    """Returns the i-th topic's name in large_response()."""
    return f"topic-{i:06d}"


def large_response(topics: int, partitions: int, epoch: int = 0) -> bytes:
    """Returns a Metadata v12 body; the leaders depend on the epoch, and topics have no ids."""
    rows = [P(i, (i + epoch) % 3 + 1, epoch) for i in range(partitions)]
    template = response(12, [T(_NAME, rows)])
    empty = response(12, [])
    end = 1  # tagged fields of the body
    start = len(empty) - end - 1  # the count of topics is here; it takes one byte while it is small
    topic = template[start + 1 : -end].split(_NAME.encode())
    assert template[:start] == empty[:start]
    assert len(topic) == 2
    count = bytearray()
    rest = topics + 1
    while rest > 0x7F:
        count.append(rest & 0x7F | 0x80)
        rest >>= 7
    count.append(rest)
    body = b"".join(topic[0] + large_name(i).encode() + topic[1] for i in range(topics))
    return empty[:start] + bytes(count) + body + template[-end:]
