"""Answers of many partitions, made fast: one topic is encoded and its name put in many times."""

from __future__ import annotations

from frames import P, T, response

_NAME = "topic-@@@@@@"


def large_name(i: int) -> str:
    """The i-th topic's name in large_response()."""
    return f"topic-{i:06d}"


def large_response(topics: int, partitions: int, epoch: int = 0) -> bytes:
    """A Metadata v12 body; who leads moves with the epoch, and ids of topics are not said."""
    rows = [P(i, (i + epoch) % 3 + 1, epoch) for i in range(partitions)]
    template = response(12, [T(_NAME, rows)])
    empty = response(12, [])
    end = 1  # tagged fields of the body
    start = len(empty) - end - 1  # where the count of topics is, one byte while it is small
    topic = template[start + 1 : -end].split(_NAME.encode())
    assert template[:start] == empty[:start]
    assert len(topic) == 2
    count = bytearray()
    left = topics + 1
    while left > 0x7F:
        count.append(left & 0x7F | 0x80)
        left >>= 7
    count.append(left)
    body = b"".join(topic[0] + large_name(i).encode() + topic[1] for i in range(topics))
    return empty[:start] + bytes(count) + body + template[-end:]
