"""Texts of brokers, files and tokens: none forges a line of a log, and no odd name is resolved."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

import pytest

import rdmeta
from rdmeta._escaping import escaped
from rdmeta.client.actions import Node, Problem
from rdmeta.client.driver import Lines, _lines_of
from rdmeta.config.address import Address
from rdmeta.history import HistoryError
from rdmeta.net.blocking_session import Connection, Deadline
from rdmeta.net.resolve import Resolver
from rdmeta.net.sasl import shown

# A new line, a colour, a separator of lines, a change of direction, half a character, and C1's ESC.
HOSTILE = "a\r\nERROR forged\x1b[2J\x00\x85\u2028\u2029\u202e\u2066\ufeff\udcff\x9b"

FIELDS: dict[str, Callable[[str], str]] = {
    "host": lambda text: str(Address(text, 9092)),
    "host with colons": lambda text: str(Address(f"::1%{text}", 9092)),
    "error of a broker": lambda text: str(rdmeta.errors.from_code(3, text)),
    "error of a topic": lambda text: str(rdmeta.UnknownTopicError(f"topic {text}")),
    "file": lambda text: str(HistoryError(f"{text}: not a whole Parquet file")),
    "configuration": lambda text: str(rdmeta.ConfigError(text)),
    "SASL and token": shown,
    "unknown option": lambda text: str(refusal({text: "x"})),
    "bootstrap server": lambda text: str(refusal({"bootstrap.servers": f"{text}:1"})),
}


def refusal(conf: dict[str, str]) -> rdmeta.ConfigError:
    with pytest.raises(rdmeta.ConfigError) as caught:
        rdmeta.config.parse(conf)
    return caught.value


def test_what_prints_stays_as_it_is() -> None:
    assert escaped("plain Äß 漢") == "plain Äß 漢"
    assert escaped("a\n\u202e\udcff") == "a\\n\\u202e\\udcff"


@pytest.mark.parametrize("field", FIELDS)
def test_a_hostile_text_is_one_line_that_prints(field: str) -> None:
    for each in (each for each in HOSTILE if not each.isprintable()):
        assert FIELDS[field](f"a{each}b").isprintable(), each
    assert FIELDS[field](HOSTILE).isprintable()


def test_a_hostile_name_forges_no_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    error = rdmeta.TransportError(f"cannot connect to {HOSTILE}")
    problem = Problem(error, Node(1, HOSTILE, 9092), f"connection {HOSTILE}")
    lines = Lines(logging.getLogger("rdmeta.client"))
    for line, same in _lines_of([problem]):
        lines.write_or_count(logging.WARNING, line, same=same)
    [record] = caplog.records
    assert record.getMessage().isprintable()
    assert "forged" in record.getMessage()


@pytest.mark.parametrize("host", ["localhost\0.other", "localhost\n", "\u202elocalhost", "l\udcff"])
def test_a_name_that_does_not_print_is_not_resolved(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **_: asked.append(given))
    with pytest.raises(rdmeta.TransportError, match="does not print") as caught:
        Connection(Address(host, 9092), Deadline(5), "me", 1000)
    assert str(caught.value).isprintable()

    async def look_up() -> object:
        loop = asyncio.get_running_loop()
        return await Resolver().lookup(Address(host, 9092), loop, socket.AF_UNSPEC)

    with pytest.raises(rdmeta.TransportError, match="does not print"):
        asyncio.run(look_up())
    assert not asked
