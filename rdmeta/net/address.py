"""Where brokers are: "host:port", "[v6]:port", and lists of them."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["DEFAULT_PORT", "Address", "parse_bootstrap"]

DEFAULT_PORT = 9092


class Address(NamedTuple):
    """A host name or IP address, without brackets, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_bootstrap(servers: str) -> list[Address]:
    """The addresses in "host:port[,host:port...]", in that order and each once.

    A port that is not given is 9092; an IPv6 address stands in brackets. ValueError says which
    part it cannot read; TypeError for what is no str. Whether a host can be looked up is found out
    by looking.
    """
    if not isinstance(servers, str):
        raise TypeError(f"bootstrap servers must be str, not {type(servers).__name__}")
    addresses = [_parse(part.strip()) for part in servers.split(",") if part.strip()]
    if not addresses:
        raise ValueError("no bootstrap server given; expected host:port[,host:port...]")
    return list(dict.fromkeys(addresses))


def _parse(text: str) -> Address:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        wrong = not bracket or (rest != "" and not rest.startswith(":"))
        colon, port = rest[:1], rest[1:]
    else:
        host, colon, port = text.partition(":")
        wrong = ":" in port or "/" in text
    if wrong or not host or (colon and not _is_port(port)):
        hint = "; an IPv6 address stands in brackets" if text.count(":") > 1 else ""
        raise ValueError(f"not a bootstrap server: {text!r}; expected host:port{hint}")
    return Address(host, int(port) if colon else DEFAULT_PORT)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536
