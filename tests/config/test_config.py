"""A configuration is checked against the table of options; wrong ones say what to change."""

from __future__ import annotations

import enum
import json
import logging
import pickle
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

import rdmeta
from rdmeta import ConfigError
from rdmeta.config import Config, load, masked, parse
from rdmeta.config.option_table import (
    JAVA_KEYS,
    LIBRDKAFKA,
    NOT_NEEDED,
    OPTIONS,
    REFUSED,
    Option,
    allowed,
)

SERVERS = {"bootstrap.servers": "kafka-1:9092,[::1],kafka-2"}
SECRET = "hunter2"
SASL: dict[str, object] = {**SERVERS, "security.protocol": "sasl_ssl"}
LOGIN = {**SASL, "sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": SECRET}
INTEGERS = [option for option in OPTIONS if option.kind == "integer"]
# These are compared with another option, which has to allow their whole range.
ROOM: dict[str, dict[str, object]] = {
    "retry.backoff.max.ms": {"retry.backoff.ms": 1},
    "reconnect.backoff.max.ms": {"reconnect.backoff.ms": 0},
    "metadata.max.age.ms": {"topic.metadata.refresh.interval.ms": -1},
}


def field(option: Option, value: object) -> Any:
    conf = {**SERVERS, **ROOM.get(option.key, {}), option.key: value}
    return getattr(parse(conf), option.field)


def problem(conf: dict[Any, Any], servers: bool = True) -> str:
    """Returns the text of the error that the configuration raises."""
    with pytest.raises(ConfigError) as caught:
        parse(conf, servers=servers)
    assert isinstance(caught.value, rdmeta.Error)
    assert isinstance(caught.value, ValueError)
    assert not caught.value.retriable
    return str(caught.value)


def test_without_options_every_field_has_its_default() -> None:
    assert parse({}, servers=False) == Config()
    assert parse(SERVERS) == Config(bootstrap_servers=SERVERS["bootstrap.servers"])


@pytest.mark.parametrize("option", INTEGERS, ids=lambda each: each.key)
def test_an_integer_may_be_the_lowest_the_highest_text_or_a_whole_float(option: Option) -> None:
    unit = 1000 if option.unit == "ms" else 1
    for value in (option.lowest, option.highest):
        for given in (value, str(value), f" {value}\n", float(value)):
            assert field(option, given) == value / unit
    for never in option.never:
        assert field(option, never) is None
        assert field(option, str(never)) is None


@pytest.mark.parametrize("option", INTEGERS, ids=lambda each: each.key)
def test_an_integer_out_of_its_range_or_of_another_type_is_refused(option: Option) -> None:
    outside = [option.lowest - 1, option.highest + 1, str(option.highest + 1), 10**30]
    other: list[object] = [True, None, "", "x", "1.5", 1.5, "0x10", "010", float("nan"), b"1", [1]]
    for value in [value for value in outside if value not in option.never] + other:
        text = problem({**SERVERS, option.key: value})
        assert text.startswith(f"{option.key} = ")
        assert text.endswith(f": expected {allowed(option)}")


@pytest.mark.parametrize(
    "option", [each for each in INTEGERS if each.origin == LIBRDKAFKA], ids=lambda each: each.key
)
def test_librdkafka_refuses_what_is_out_of_range_here(option: Option) -> None:
    room = ROOM.get(option.key, {})
    below = min(option.lowest, *option.never, option.lowest) - 1
    if option.key == "metadata.max.age.ms":
        below = 0  # -1, for no maximum age, is rdmeta's own
    for value in (below, option.highest + 1):
        if value > 2**31 - 1:
            continue  # librdkafka takes the lower 32 bits of such a number
        with pytest.raises(KafkaException, match="outside allowed range"):
            Producer({**SERVERS, **room, option.key: value})


@pytest.mark.parametrize(
    "option", [each for each in OPTIONS if each.kind == "flag" and not each.area]
)
def test_a_flag_is_true_false_or_what_librdkafka_takes_for_them(option: Option) -> None:
    for value in (True, "true", "TRUE", "t", "1", 1):
        assert field(option, value) is True
    for value in (False, "false", "False", "f", "0", 0):
        assert field(option, value) is False
    others: list[object] = ["yes", "", 2, None, 1.0, []]
    for wrong in others:
        assert f"{option.key} = " in problem({**SERVERS, option.key: wrong})


def test_a_choice_is_one_of_its_words_in_any_case() -> None:
    key = "metadata.recovery.strategy"
    assert parse({**SERVERS, key: "Rebootstrap"}).rebootstrap
    assert not parse({**SERVERS, key: "none"}).rebootstrap
    for wrong in ("no", "", None, True, 1):
        text = problem({**SERVERS, key: wrong})
        assert text == f"{key} = {wrong!r}: expected none or rebootstrap"


def test_text_is_any_utf8_that_a_request_can_hold() -> None:
    assert parse({**SERVERS, "client.id": ""}).client_id == ""
    assert parse({**SERVERS, "client.id": 7}).client_id == "7"
    assert parse({**SERVERS, "client.id": "ü" * 16383}).client_id == "ü" * 16383
    assert "at most 32767 bytes" in problem({**SERVERS, "client.id": "ü" * 16384})
    assert "not UTF-8" in problem({**SERVERS, "client.id": "\udc80"})
    assert "of type list" in problem({**SERVERS, "client.id": []})


class Spelled(str, enum.Enum):
    """Values whose str() is their name in the class, as Python 3.11 prints them."""

    NAME = "orders-proxy"
    SERVER = "kafka-1:9092"
    YES = "true"
    NONE = "none"
    TIME = "1000"

    def __str__(self) -> str:
        return f"Spelled.{self.name}"


class Size(enum.IntEnum):
    FRAME = 2000


def test_a_value_of_an_enum_counts_as_its_text_or_number() -> None:
    config = parse(
        {
            "bootstrap.servers": Spelled.SERVER,
            "client.id": Spelled.NAME,
            "allow.auto.create.topics": Spelled.YES,
            "metadata.recovery.strategy": Spelled.NONE,
            "max.block.ms": Spelled.TIME,
            "receive.message.max.bytes": Size.FRAME,
        }
    )
    assert (config.allow_auto_create, config.rebootstrap, config.max_block) == (True, False, 1)
    plain = (config.bootstrap_servers, config.client_id, config.max_frame)
    assert plain == ("kafka-1:9092", "orders-proxy", 2000)
    assert [type(value) for value in plain] == [str, str, int]


def test_an_integer_of_another_library_is_an_integer() -> None:
    numpy = pytest.importorskip("numpy")
    assert parse({**SERVERS, "max.block.ms": numpy.int64(5000)}).max_block == 5
    assert "expected" in problem({**SERVERS, "max.block.ms": numpy.int64(-5)})


@pytest.mark.parametrize(
    "option", [each for each in OPTIONS if not each.area], ids=lambda each: each.key
)
def test_a_number_that_python_does_not_print_is_refused_like_any_other(option: Option) -> None:
    text = problem({**SERVERS, option.key: 10**5000})
    assert f"{option.key} = an integer of 16610 bits: expected {allowed(option)}" in text


def test_none_is_a_text_that_is_not_set_as_in_confluent_kafka() -> None:
    conf = {**SERVERS, "client.id": None, "topic.blacklist": None, "metadata.broker.list": None}
    assert parse(conf) == parse(SERVERS)
    assert "bootstrap.servers is missing" in problem({"bootstrap.servers": None})


def test_a_blacklist_is_searched_for_in_names_and_two_commas_are_one() -> None:
    config = parse({**SERVERS, "topic.blacklist": "^__,test$,a,,b,"})
    assert [pattern.pattern for pattern in config.blacklist] == ["^__", "test$", "a,b"]
    assert [bool(re.search(config.blacklist[1], name)) for name in ("my-test", "test-2")] == [
        True,
        False,
    ]
    text = problem({**SERVERS, "topic.blacklist": "ok,(x"})
    assert text.startswith("topic.blacklist: '(x' is no regular expression: missing )")
    assert "of type list" in problem({**SERVERS, "topic.blacklist": ["a"]})


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        (",,", [","]),
        (",,,", [","]),
        ("a,,,b", ["a,", "b"]),
        (",a,", ["a"]),
        ("a\0b,c\n", ["a\0b", "c\n"]),
    ],
)
def test_a_blacklist_is_split_at_single_commas(text: str, patterns: list[str]) -> None:
    config = parse({**SERVERS, "topic.blacklist": text})
    assert [pattern.pattern for pattern in config.blacklist] == patterns


@pytest.mark.parametrize(
    ("pattern", "cause"),
    [
        ("a{1,,99999999999}", "the repetition number is too large"),
        ("(" * 9000 + ")" * 9000, "maximum recursion depth exceeded"),
        ("[[:digit:]]+", "has [:digit:], which Python's expressions lack"),
    ],
)
def test_a_pattern_that_python_cannot_compile_is_an_error(pattern: str, cause: str) -> None:
    text = problem({**SERVERS, "topic.blacklist": f"ok,{pattern}"})
    assert text.startswith("topic.blacklist: '")
    assert cause in text
    assert len(text) < 250


@pytest.mark.parametrize(
    ("servers", "cause"),
    [
        ("", "no bootstrap server given"),
        ("a:b", "not a bootstrap server: 'a:b'; expected host:port"),
        ("::1:9092", "put an IPv6 address in brackets"),
        ("SASL_SSL://a:9092", "has the protocol sasl_ssl, but security.protocol is plaintext"),
        (f"user:{SECRET}@a:9092", "no user name or password"),
        (["a:9092"], "expected host:port[,host:port...]"),
    ],
)
def test_an_unreadable_server_is_refused_without_a_look_up(servers: object, cause: str) -> None:
    for key in ("bootstrap.servers", "metadata.broker.list"):
        text = problem({key: servers})
        assert text.startswith(key)
        assert cause in text
        assert SECRET not in text


def test_servers_are_needed_unless_the_caller_has_them() -> None:
    assert problem({}) == "bootstrap.servers is missing: expected host:port[,host:port...]"
    assert parse({"client.id": "x"}, servers=False).bootstrap_servers == ""


def test_both_names_of_an_option_may_be_set_to_the_same() -> None:
    both = {"metadata.broker.list": "a:1", "bootstrap.servers": "a:1"}
    assert parse(both).bootstrap_servers == "a:1"
    assert problem({**both, "bootstrap.servers": "b:1"}) == (
        "metadata.broker.list and bootstrap.servers are one option, and have different values"
    )


@pytest.mark.parametrize(
    ("first", "longest"),
    [
        ("retry.backoff.ms", "retry.backoff.max.ms"),
        ("topic.metadata.refresh.fast.interval.ms", "retry.backoff.max.ms"),
        ("reconnect.backoff.ms", "reconnect.backoff.max.ms"),
    ],
)
def test_a_first_wait_above_the_longest_is_a_contradiction(first: str, longest: str) -> None:
    text = problem({**SERVERS, first: 70, longest: "60"})
    assert text == f"{first} = 70 is more than {longest} = 60"
    parse({**SERVERS, first: 60, longest: 60})


def test_a_default_gives_way_to_what_is_set() -> None:
    config = parse({**SERVERS, "retry.backoff.ms": 2000, "reconnect.backoff.ms": 20_000})
    assert (config.retry_backoff, config.retry_backoff_max, config.fast_interval) == (2, 2, 2)
    assert (config.reconnect_backoff, config.reconnect_backoff_max) == (20, 20)
    config = parse({**SERVERS, "retry.backoff.max.ms": 50, "reconnect.backoff.max.ms": 0})
    assert (config.retry_backoff, config.retry_backoff_max, config.fast_interval) == (
        0.05,
        0.05,
        0.05,
    )
    assert (config.reconnect_backoff, config.reconnect_backoff_max) == (0, 0)
    config = parse({**SERVERS, "topic.metadata.refresh.fast.interval.ms": 5000})
    assert (config.retry_backoff, config.retry_backoff_max, config.fast_interval) == (0.1, 5, 5)


def test_the_maximum_age_is_three_intervals_and_a_minute_at_least_unless_set() -> None:
    interval, age = "topic.metadata.refresh.interval.ms", "metadata.max.age.ms"
    assert parse({**SERVERS, interval: 30_000}).max_age == 90
    assert parse({**SERVERS, interval: 2000}).max_age == 60
    assert parse({**SERVERS, interval: 1000, age: 3000}).max_age == 3
    assert parse({**SERVERS, interval: -1}).max_age is None
    assert parse({**SERVERS, interval: 0}).refresh_interval is None
    assert parse({**SERVERS, interval: -1, age: 1000}).max_age == 1
    assert parse({**SERVERS, interval: 1000, age: -1}).max_age is None


def test_a_maximum_age_below_the_interval_shortens_it_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    conf = {**SERVERS, "topic.metadata.refresh.interval.ms": 60_000}
    config = parse({**conf, "metadata.max.age.ms": 30_000})
    assert (config.refresh_interval, config.max_age) == (10, 30)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "metadata.max.age.ms is below" in record.message
    assert "every 10 s instead of 60 s" in record.message
    caplog.clear()
    assert parse({**conf, "metadata.max.age.ms": 60_000}).refresh_interval == 60
    assert caplog.records == []


def test_a_tiny_maximum_age_does_not_become_a_flood_of_refreshes() -> None:
    config = parse({**SERVERS, "metadata.max.age.ms": 1})
    assert (config.max_age, config.refresh_interval) == (0.001, config.retry_backoff)


def test_options_that_metadata_does_not_need_are_named_in_one_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    confluent = {
        "acks": "all",
        "linger.ms": 5,
        "group.id": "g",
        "on_delivery": print,
        "error_cb": print,
        "default.topic.config": {"acks": 1},
        "topic.compression.type": "zstd",
    }
    assert parse({**SERVERS, **confluent}) == parse(SERVERS)
    (record,) = caplog.records
    assert all(key in record.message for key in confluent)
    assert record.name == "rdmeta.config"


def test_every_option_of_librdkafka_is_accepted_or_refused_by_name() -> None:
    assert parse({**SERVERS, **dict.fromkeys(NOT_NEEDED, "any")}) == parse(SERVERS)
    text = problem({**SASL, "sasl.mechanism": "x", **dict.fromkeys(REFUSED, SECRET)})
    assert all(f"{key}: {REFUSED[key].reason}" in text for key in REFUSED)
    assert SECRET not in text


@pytest.mark.parametrize("protocol", ["tls", "", None, "sasl", 1])
def test_a_protocol_that_kafka_lacks_is_refused(protocol: object) -> None:
    assert problem({**SERVERS, "security.protocol": protocol}) == (
        f"security.protocol = {protocol!r}: expected plaintext or ssl or sasl_plaintext or sasl_ssl"
    )


def test_the_protocol_decides_which_parts_of_the_security_there_are() -> None:
    login = {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": SECRET}
    for protocol in ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"):
        for given in (protocol, protocol.upper(), f" {protocol} "):
            config = parse({**SERVERS, **login, "security.protocol": given})
            assert config.protocol == protocol
            assert (config.tls is not None) is protocol.endswith("ssl")
            assert (config.sasl is not None) is protocol.startswith("sasl")
            assert config.is_secured is (protocol != "plaintext")
            assert SECRET not in repr(config)


def test_options_without_an_effect_are_accepted_and_named_in_one_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    tls = {"ssl.ca.location": "", "ssl.key.pem": 7, "ssl.new": SECRET, "ssl.engine.id": "x"}
    sasl = {"sasl.password": [], "sasl.jaas.config": SECRET, "sasl.kerberos.keytab": "x"}
    conf = {**tls, **sasl, **SERVERS}
    for protocol in ("PLAINTEXT", "plaintext"):
        caplog.clear()
        assert parse({**conf, "security.protocol": protocol}) == parse(SERVERS)
        (record,) = caplog.records
        assert all(key in record.message for key in [*tls, *sasl])
        assert SECRET not in record.message
    caplog.clear()
    assert parse({**SERVERS, **sasl, "security.protocol": "ssl"}).sasl is None
    assert "sasl.jaas.config, sasl.kerberos.keytab, sasl.password" in caplog.messages[0]
    caplog.clear()
    assert parse({**LOGIN, "sasl.kerberos.service.name": "kafka", "oauth_cb": 1}).is_secured
    assert "oauth_cb, sasl.kerberos.service.name" in caplog.messages[0]


@pytest.mark.parametrize(
    ("conf", "needed"),
    [
        ({"ssl.ca.location": "x"}, "ssl.ca.location needs ssl or sasl_ssl"),
        ({"sasl.password": "x"}, "sasl.password needs sasl_ssl or sasl_plaintext"),
        (
            {"sasl.username": "x", "sasl.password": "x", "ssl.ca.pem": None, "oauth_cb": print},
            "oauth_cb, sasl.password, sasl.username, ... need sasl_ssl",
        ),
    ],
)
def test_security_without_a_protocol_is_an_error_that_says_which(
    conf: dict[str, object], needed: str
) -> None:
    assert problem({**SERVERS, **conf}) == f"security.protocol is missing: {needed}"


def test_an_address_may_begin_with_the_protocol_of_the_client() -> None:
    servers = {"bootstrap.servers": "SASL_SSL://a:1"}
    assert parse({**LOGIN, **servers}).bootstrap_servers == "SASL_SSL://a:1"
    assert problem({**LOGIN, **servers, "security.protocol": "ssl"}) == (
        "bootstrap.servers: a bootstrap server has the protocol sasl_ssl,"
        " but security.protocol is ssl"
    )
    assert "security.protocol = 'x'" in problem({**servers, "security.protocol": "x"})


def test_a_config_with_a_secret_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="a secret cannot be pickled: sasl.password"):
        pickle.dumps(parse(LOGIN))
    assert parse(LOGIN) == parse(LOGIN)
    assert parse(LOGIN) != parse({**LOGIN, "sasl.password": "other"})


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("retry.backof.ms", "retry.backoff.ms"),
        ("bootstrap_servers", "bootstrap.servers"),
        ("Client.Id", "client.id"),
        ("lingerms", "linger.ms"),
        ("sasl_password", "sasl.password"),
        ("metadata.max.topic", "metadata.max.topics"),
    ],
)
def test_an_unknown_option_is_an_error_with_the_nearest_one(key: str, meant: str) -> None:
    text = problem({**SERVERS, key: SECRET})
    assert text == f"unknown option {key!r}, did you mean {meant}?"


def test_an_option_that_is_like_no_other_has_no_suggestion() -> None:
    assert problem({**SERVERS, "zzzzzzzz": 1}) == "unknown option 'zzzzzzzz'"
    assert problem({**SERVERS, b"client.id": 1}) == "an option's name is str, not bytes"
    assert problem({**SERVERS, "x" * 5000: 1}) == f"unknown option {'x' * 59!r:.60}..."


def test_one_error_lists_every_problem() -> None:
    conf = {"retry.backoff.ms": 0, "nope.nope": 1, "sasl.password": "", "ssl.engine.id": SECRET}
    assert [part.split()[0] for part in problem(conf).split("; ")] == [
        "retry.backoff.ms",
        "unknown",
        "sasl.password",
        "ssl.engine.id:",
        "bootstrap.servers",
        "security.protocol",
    ]


def test_an_error_lists_a_hundred_problems_at_most() -> None:
    text = problem({**SERVERS, **{f"bootstrap.server{i}": 1 for i in range(5000)}})
    assert text.count("unknown option") == 100
    assert text.endswith("; and 4900 more problems")


def test_a_long_or_strange_value_is_not_poured_into_the_error() -> None:
    assert len(problem({**SERVERS, "retry.backoff.ms": "9" * 10_000})) < 200
    assert "of type dict" in problem({**SERVERS, "retry.backoff.ms": {"password": SECRET}})
    assert SECRET not in problem({**SERVERS, "retry.backoff.ms": {"password": SECRET}})


VALUES: list[object] = [
    *(
        None,
        True,
        1,
        -1,
        0,
        10**400,
        1e400,
        float("nan"),
        -0.0,
        "",
        "a",
        "1",
        "-1",
        " 5 ",
        "\u0663",
    ),
    *("1e3", "true", "(", "[a", "(?i)x", "a**", "\\", "*", "a" * 70_000, "\udc80", b"x", [], {}),
    *(object(), print, "host:1,[::1", "[", "]:1", ":", ",", "a b:1", "x://", "\0", "(?<=a+)b"),
]


def test_any_value_of_any_option_is_accepted_or_a_config_error() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    keys: list[object] = [option.key for option in OPTIONS]
    keys += ["metadata.broker.list", "acks", "x", "", "\udc80", None, b"a", ("a",)]
    keys += [*JAVA_KEYS, *REFUSED]
    secured: Any = {"security.protocol": "sasl_ssl", "sasl.mechanism": "OAUTHBEARER"}
    for _ in range(3000):
        conf: Any = {key: chance.choice(VALUES) for key in chance.sample(keys, 3)}
        conf |= secured if chance.random() < 0.5 else {}
        text = ""
        try:
            parse(conf, servers=False)
        except ConfigError as error:
            text = str(error)
        assert len(text) < 1500


def test_what_is_no_mapping_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="not str"):
        parse("bootstrap.servers=a")  # type: ignore[arg-type]


def test_a_config_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(ConfigError("retry.backoff.ms = 0")))
    assert (type(error), str(error), error.code) == (ConfigError, "retry.backoff.ms = 0", None)


def test_a_file_is_loaded_and_parsed(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("# mine\nbootstrap.servers = a:1,b:2\nretry.backoff.ms=50\nacks=all\n")
    config = parse(load(path))
    assert (config.bootstrap_servers, config.retry_backoff) == ("a:1,b:2", 0.05)
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "other")


def test_checking_a_configuration_opens_no_socket_and_imports_no_asyncio() -> None:
    code = (
        "import json, sys; from rdmeta.config import parse;"
        "parse({'bootstrap.servers': 'no.such.host.invalid:1'});"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60
    )
    assert not {"socket", "asyncio", "ssl", "difflib"} & set(json.loads(done.stdout))


def test_a_configuration_is_shown_without_secrets() -> None:
    conf: dict[str, object] = {
        "client.id": "me",
        "socket.keepalive.enable": True,
        "metadata.max.topics": 7,
        "sasl.password": "s1",
        "sasl.username": lambda: "s2",
        "sasl.pasword": "s3",
        "metadata.broker.list": "user:s4@host",
        "ssl.ca.pem": "x" * 1000,
        "ssl.certificate.pem": "-----BEGIN PRIVATE KEY-----s5",
        "sasl.jaas.config": "s6",
        "ssl.truststore.location": "store.pem",
        "group.id": "billing",
    }
    assert masked(conf) == {
        "client.id": "me",
        "socket.keepalive.enable": "true",
        "metadata.max.topics": "7",
        "sasl.password": "***",
        "sasl.username": "a callable",
        "sasl.pasword": "***",
        "metadata.broker.list": "***",
        "ssl.ca.pem": "PEM of 1000 characters",
        "ssl.certificate.pem": "***",
        "sasl.jaas.config": "***",
        "ssl.truststore.location": "store.pem",
        "group.id": "billing",
    }
