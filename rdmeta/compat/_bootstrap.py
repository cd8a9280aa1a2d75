"""Reads `bootstrap_servers` as kafka-python and aiokafka do."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable

from rdmeta.config.address import DEFAULT_PORT, shown


def hosts_of(servers: str | Iterable[str], *, protocols: bool = False) -> list[tuple[str, int]]:
    """Returns the hosts and ports of "host[:port]": a list of these, or a str with commas.

    The order stays, although both libraries shuffle it. An IPv6 address with a port needs brackets.
    With `protocols` the text up to "://" is ignored, as in kafka-python. Raises ValueError for a
    server that cannot be read, and TypeError for one that is not a str.
    """
    if not isinstance(servers, str):
        return [_host(server, protocols) for server in servers]
    try:
        return [_host(server, protocols) for server in servers.strip().split(",")]
    except ValueError:
        if "@" not in servers:
            raise
    # A comma may be part of a password, so the error shows none of the servers.
    raise ValueError(f"not bootstrap servers: {shown(servers)}; expected host[:port]")


def _host(server: str, protocols: bool) -> tuple[str, int]:
    if not isinstance(server, str):
        raise TypeError(f"a bootstrap server must be a str, not {type(server).__name__}")
    text = (re.sub("^.*://", "", server) if protocols else server).strip()
    try:
        if text.startswith("["):
            host, rest = text[1:].split("]")
            return host, int(rest[1:]) if rest else DEFAULT_PORT
        if ":" not in text or _is_ipv6(text):
            return text, DEFAULT_PORT
        host, _, port = text.rpartition(":")
        return host, int(port)
    except ValueError:
        raise ValueError(f"not a bootstrap server: {shown(text)}; expected host[:port]") from None


def _is_ipv6(text: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET6, text)
    except (OSError, ValueError):
        return False
    return True
