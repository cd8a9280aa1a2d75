"""`bootstrap_servers` as kafka-python and aiokafka read them."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable

from rdmeta.net.address import DEFAULT_PORT, shown

__all__ = ["hosts_of"]


def hosts_of(servers: str | Iterable[str], *, protocols: bool = False) -> list[tuple[str, int]]:
    """The hosts and ports of "host[:port]", several with commas between them or in a list.

    In their order, where both libraries shuffle them. An IPv6 address with a port stands in
    brackets. With `protocols` what leads up to "://" is ignored, as kafka-python does. ValueError
    for what is none of these, TypeError for what is no str.
    """
    if not isinstance(servers, str):
        return [_host(server, protocols) for server in servers]
    try:
        return [_host(server, protocols) for server in servers.strip().split(",")]
    except ValueError:
        if "@" not in servers:
            raise
    # A comma may be part of a password.
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
