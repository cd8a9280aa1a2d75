"""The addresses of brokers: "host:port", "[v6]:port", and lists of them."""

from __future__ import annotations

import re
from typing import NamedTuple

from rdmeta._escaping import escaped

__all__ = ["DEFAULT_PORT", "Address", "parse_bootstrap", "shown"]

DEFAULT_PORT = 9092

_PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
# A protocol before the host, as a broker's listeners have it.
_PROTOCOL = re.compile(r"([A-Za-z][A-Za-z0-9_+.-]*)://")
# The characters of a host and a port. An error shows only these: what follows may be a secret.
_HARMLESS = re.compile(r"[\w.:\[\]%-]*")


class Address(NamedTuple):
    """A host name or IP address, without brackets, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{escaped(host)}:{self.port}"


def parse_bootstrap(servers: str, protocol: str | None = "plaintext") -> list[Address]:
    """Returns the addresses in "host:port[,host:port...]", in that order, each once.

    The default port is 9092. An IPv6 address needs brackets. The client's `protocol` may come
    first, as in SASL_SSL://host:port; any protocol of Kafka's may if it is None. No name is
    resolved. Raises ValueError, which names the unreadable part or the wrong protocol and shows no
    user name or password. Raises TypeError if `servers` is not a str.

        parse_bootstrap("SSL://kafka-1:9093,kafka-2:9093", "ssl")
    """
    if not isinstance(servers, str):
        raise TypeError(f"bootstrap servers must be str, not {type(servers).__name__}")
    if "@" in servers:  # the error does not show the text before it, which may be a password
        raise ValueError(
            "a bootstrap server has no user name or password (there is an '@'); expected host:port"
        )
    addresses = [_parse(part.strip(), protocol) for part in servers.split(",") if part.strip()]
    if not addresses:
        raise ValueError("no bootstrap server given; expected host:port[,host:port...]")
    return list(dict.fromkeys(addresses))


def _parse(server: str, expected: str | None) -> Address:
    protocol = _PROTOCOL.match(server)
    named = protocol[1].lower() if protocol else expected
    if protocol and named not in _PROTOCOLS:
        raise ValueError(
            f"the protocol {protocol[1]}:// of a bootstrap server is not Kafka's;"
            " expected host:port"
        )
    if expected is not None and named != expected:
        raise ValueError(
            f"a bootstrap server has the protocol {named}, but security.protocol is {expected}"
        )
    text = server[protocol.end() :] if protocol else server
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        wrong = not bracket or (rest != "" and not rest.startswith(":"))
        colon, port = rest[:1], rest[1:]
    else:
        host, colon, port = text.partition(":")
        wrong = ":" in port or "/" in text
    wrong = wrong or not host.isprintable() or " " in host
    if wrong or not host or (colon and not _is_port(port)):
        hint = "; put an IPv6 address in brackets" if text.count(":") > 1 else ""
        if not wrong and host:
            hint = ", with a port from 1 to 65535"
        raise ValueError(f"not a bootstrap server: {shown(text)}; expected host:port{hint}")
    return Address(host, int(port) if colon else DEFAULT_PORT)


def shown(text: str) -> str:
    """Returns the part of an address that an error may show, without a possible password."""
    if "@" in text:
        return "'...'"
    match = _HARMLESS.match(text)
    harmless = match[0] if match else ""
    return repr(text) if harmless == text else f"{harmless!r}..."


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536
