"""Bootstrap lists: the forms that are read, and the forms that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from rdmeta.config.address import Address, parse_bootstrap


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("localhost:9094", "localhost", 9094),
        ("kafka-1.example.org", "kafka-1.example.org", 9092),
        ("10.0.0.7:1", "10.0.0.7", 1),
        ("[::1]:65535", "::1", 65535),
        ("[2001:db8::7]", "2001:db8::7", 9092),
    ],
)
def test_one_server_is_a_host_and_a_port(text: str, host: str, port: int) -> None:
    assert parse_bootstrap(text) == [Address(host, port)]


def test_servers_keep_their_order_and_lose_their_duplicates() -> None:
    parsed = parse_bootstrap("b:2, a:1,b:2 ,,[::1]:3")
    assert [str(address) for address in parsed] == ["b:2", "a:1", "[::1]:3"]


def test_an_address_prints_as_it_is_parsed() -> None:
    for text in ("a:1", "[fe80::1]:9092"):
        assert str(parse_bootstrap(text)[0]) == text


@pytest.mark.parametrize(
    "text",
    ["", " , ", ":9092", "a:", "a:0", "a:65536", "a:-1", "a:٣", "a:9o92", "[::1", "[]:1", "[::1]9"],
)
def test_text_that_is_no_server_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="server"):
        parse_bootstrap(text)


@pytest.mark.parametrize("host", ["a b", "a\n", "\0", "a\t", "a\u00a0b", "\udc80"])
def test_no_host_has_a_space_or_a_character_that_does_not_print(host: str) -> None:
    with pytest.raises(ValueError, match="not a bootstrap server"):
        parse_bootstrap(f"ok:1,{host}:9092,ok:2")


@pytest.mark.parametrize("port", ["0", "65536", "99999", "-1", "x", ""])
def test_a_wrong_port_is_refused_with_the_range(port: str) -> None:
    with pytest.raises(ValueError, match="with a port from 1 to 65535"):
        parse_bootstrap(f"a:{port}")


@pytest.mark.parametrize("servers", [None, b"a:1", ["a:1"]])
def test_a_value_that_is_no_str_is_a_type_error(servers: Any) -> None:
    with pytest.raises(TypeError, match="bootstrap servers must be str"):
        parse_bootstrap(servers)


def test_a_bare_ipv6_address_is_refused_with_the_way_to_write_it() -> None:
    with pytest.raises(ValueError, match="brackets"):
        parse_bootstrap("::1:9092")


def test_the_protocol_of_the_client_may_come_first() -> None:
    assert parse_bootstrap("PLAINTEXT://a:1,plaintext://[::1]:2") == [("a", 1), ("::1", 2)]
    for protocol in ("ssl", "sasl_plaintext", "sasl_ssl"):
        servers = f"{protocol.upper()}://a:1,b:2"
        assert parse_bootstrap(servers, protocol) == [("a", 1), ("b", 2)]
        assert parse_bootstrap(servers, None) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("expected", ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"])
def test_another_protocol_is_refused_with_both_names(expected: str) -> None:
    for named in {"plaintext", "ssl", "sasl_plaintext", "sasl_ssl"} - {expected}:
        text = f"has the protocol {named}, but security.protocol is {expected}$"
        with pytest.raises(ValueError, match=text):
            parse_bootstrap(f"a:1,{named.upper()}://b:1", expected)


@pytest.mark.parametrize("expected", ["plaintext", None])
def test_a_protocol_that_is_not_kafkas_is_refused_by_name(expected: str | None) -> None:
    with pytest.raises(ValueError, match="protocol http:// of a bootstrap server is not Kafka's"):
        parse_bootstrap("http://a:1", expected)


@pytest.mark.parametrize(
    "servers",
    [
        "user:secret@a:9092",
        "secret@a:9092",
        "a:1,user:very,secret@b:2",
        "SASL_SSL://user:secret@a:9093",
        "a:9092?password=secret",
        "a:9092/secret",
        "a:b;password=secret",
    ],
)
def test_no_secret_in_an_address_is_repeated(servers: str) -> None:
    with pytest.raises(ValueError, match="server") as caught:
        parse_bootstrap(servers)
    assert "secret" not in str(caught.value)
