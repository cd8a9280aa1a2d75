"""The table of options, beside librdkafka's own, and the page that is made from it."""

from __future__ import annotations

import ctypes
import dataclasses
import re
from importlib import metadata
from typing import Any, NamedTuple

import pytest

from rdmeta.config import Config
from rdmeta.config.option_table import (
    JAVA_KEYS,
    LIBRDKAFKA,
    NOT_NEEDED,
    OPTIONS,
    REFUSED,
    Option,
    allowed,
)
from rdmeta.config.option_values import KINDS
from rdmeta.config.security_settings import OauthSettings, SaslSettings, TlsSettings


class Theirs(NamedTuple):
    """A row of librdkafka's table."""

    range: str
    default: str
    kind: str


@pytest.fixture(scope="module")
def librdkafka(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Theirs]:
    """Returns the table that the librdkafka of the confluent-kafka wheel prints of itself."""
    path = tmp_path_factory.mktemp("librdkafka") / "properties.md"
    bundled = [
        file for file in metadata.files("confluent-kafka") or [] if "librdkafka" in file.name
    ]
    library, libc = ctypes.CDLL(str(bundled[0].locate())), ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(libc.fopen(str(path).encode(), b"w"))
    library.rd_kafka_conf_properties_show(file)
    libc.fclose(file)
    rows: dict[str, Theirs] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) >= 6 and cells[1] in ("*", "C", "P"):
            kind = re.search(r"\*Type: (.*?)\*", line)
            assert kind
            rows.setdefault(cells[0], Theirs(cells[2], cells[3], kind[1]))
    return rows


def test_every_option_of_librdkafka_is_known(librdkafka: dict[str, Theirs]) -> None:
    known = {option.key for option in OPTIONS} | {option.alias for option in OPTIONS}
    assert len(librdkafka) > 150
    assert set(librdkafka) - known - NOT_NEEDED - set(REFUSED) - set(JAVA_KEYS) == set()


def test_an_option_is_in_one_list() -> None:
    keys = [key for option in OPTIONS for key in (option.key, option.alias) if key]
    assert len(set(keys)) == len(keys)
    lists = [*keys, *NOT_NEEDED, *REFUSED, *JAVA_KEYS]
    assert len(set(lists)) == len(lists)


# librdkafka's defaults that rdmeta does not share.
DIFFERENT = {"client.id": "rdkafka", "sasl.mechanism": "GSSAPI"}


@pytest.mark.parametrize(
    "option", [each for each in OPTIONS if each.origin == LIBRDKAFKA], ids=lambda each: each.key
)
def test_ranges_defaults_and_types_are_librdkafkas(
    option: Option, librdkafka: dict[str, Theirs]
) -> None:
    theirs = librdkafka[option.key]
    if option.kind == "integer":
        lowest, highest = map(int, theirs.range.split(" .. "))
        low_nevers = [value for value in option.never if lowest <= value < option.lowest]
        assert min([option.lowest, *low_nevers]) == lowest
        assert option.lowest == lowest + len(low_nevers)
        assert option.highest == highest
        assert theirs == (theirs.range, str(option.default), "integer")
    elif option.kind == "flag":
        assert theirs == ("true, false", str(option.default).lower(), "boolean")
    elif option.kind == "choice":
        assert set(option.choices) <= set(theirs.range.split(", "))
        assert theirs[1:] == (option.default, "enum value")
    else:
        assert theirs.default == DIFFERENT.get(option.key, option.default or "")
        assert theirs.kind in ("string", "pattern list")


def test_an_alias_is_librdkafkas(librdkafka: dict[str, Theirs]) -> None:
    for option in OPTIONS:
        if option.alias:
            assert librdkafka[option.alias] == librdkafka[option.key]


def test_an_option_of_another_origin_is_unknown_to_librdkafka(
    librdkafka: dict[str, Theirs],
) -> None:
    others = {option.key for option in OPTIONS if option.origin != LIBRDKAFKA}
    ours = {"metadata.max.idle.ms", "metadata.max.topics", "max.block.ms"}
    assert others == {*ours, "oauth_cb", "ssl.enabled.protocols"}
    assert others & set(librdkafka) == set()


def test_each_field_of_a_config_has_one_option_with_its_default() -> None:
    config = Config()
    own = [option for option in OPTIONS if option.field and not option.area]
    fields = [*(option.field for option in own), "tls", "sasl"]
    assert sorted(fields) == sorted(field.name for field in dataclasses.fields(Config))
    for option in own:
        if option.unit == "ms":
            assert getattr(config, option.field) == option.default / 1000
        else:
            default = option.choices.get(str(option.default), option.default)
            assert getattr(config, option.field) == default


@pytest.mark.parametrize(
    ("prefix", "settings", "others"),
    [
        ("tls", TlsSettings, {"versions", "lowest_version", "highest_version"}),
        ("sasl", SaslSettings, {"oauth"}),
        ("oauth", OauthSettings, set()),
    ],
)
def test_each_field_of_the_security_has_one_option_with_its_default(
    prefix: str, settings: type[Any], others: set[str]
) -> None:
    by_field = {each.field.partition(".")[2]: each for each in OPTIONS if each.area}
    named = [each.field for each in OPTIONS if each.field.startswith(f"{prefix}.")]
    assert len(set(named)) == len(named)
    fields = {field.name: field for field in dataclasses.fields(settings)}
    found = {name.partition(".")[2] for name in named}
    assert found ^ set(fields) == others & (found ^ set(fields))
    for name in found & set(fields):
        default = by_field[name].choices.get(str(by_field[name].default), by_field[name].default)
        assert (fields[name].default or "") == (default or "") or name == "mechanism"


def test_each_kind_of_option_has_a_check_and_words_for_what_it_allows() -> None:
    kinds = {option.kind: option for option in OPTIONS}
    assert set(kinds) == set(KINDS)
    assert all(allowed(option) for option in kinds.values())
