"""The configurations of docs/security.md are accepted; the page names each option of security."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rdmeta import config
from rdmeta.config.option_table import OPTIONS

PAGE = Path(__file__).resolve().parents[2] / "docs/security.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^## ([^\n]+)\n|^```(\w+)\n(.*?)^```$", TEXT, re.S | re.M)


def examples(language: str) -> list[tuple[str, str]]:
    """Returns the blocks of a language, each with the title of its section."""
    found, title = [], ""
    for heading, kind, block in BLOCKS:
        title = heading or title
        if kind == language:
            found.append((title, block))
    return found


# What the configuration of each section is: protocol, mechanism.
KINDS = {
    "Confluent Cloud": ("sasl_ssl", "PLAIN"),
    "Amazon MSK with IAM": ("sasl_ssl", "OAUTHBEARER"),
    "A client certificate (mTLS)": ("ssl", None),
    "SCRAM": ("sasl_ssl", "SCRAM-SHA-512"),
    "OAuth: client credentials of an OIDC server": ("sasl_ssl", "OAUTHBEARER"),
    "A private CA": ("ssl", None),
}


def parsed(conf: Mapping[str, object], log: pytest.LogCaptureFixture) -> config.Config:
    """Returns the checked configuration; none of its options of TLS or SASL is ignored."""
    with log.at_level("INFO", "rdmeta"):
        found = config.parse(conf)
    assert not re.search(r"\b(ssl|sasl|https|oauth)[._]", log.text)
    return found


def kind(found: config.Config) -> tuple[str, str | None]:
    """Returns the protocol and the mechanism."""
    assert (found.tls is not None) is found.protocol.endswith("ssl")
    return found.protocol, found.sasl.mechanism if found.sasl is not None else None


@pytest.fixture(autouse=True)
def _others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets what the examples read: variables, and Amazon's package, which signs a URL."""
    for name in set(re.findall(r'os\.environ(?:\.get\(|\[)"(\w+)"', TEXT)):
        secret = name.endswith(("SECRET", "PASSWORD"))
        monkeypatch.setenv(name, "hidden" if secret else "reader")
    provider = SimpleNamespace(generate_auth_token=lambda region: (f"hidden-{region}", 4e12))
    package = SimpleNamespace(MSKAuthTokenProvider=provider)
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", package)


@pytest.mark.parametrize(("title", "code"), examples("python"))
def test_a_program_of_the_security_page_makes_a_client(
    title: str, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    names: dict[str, Any] = {}
    exec(compile(code, f"{PAGE.name}: {title}", "exec"), names)
    found = parsed(names["conf"], caplog)
    assert kind(found) == KINDS[title]
    assert "hidden" not in repr(found)
    names["client"].close()


@pytest.mark.parametrize(("title", "lines"), examples("properties"))
def test_a_properties_file_of_the_security_page_is_accepted(
    title: str, lines: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(lines, encoding="utf-8")
    found = parsed(config.load(file), caplog)
    assert kind(found) == KINDS[title]
    assert "SECRET" not in repr(found)


def test_the_token_of_the_page_for_amazon_expires_in_seconds() -> None:
    names: dict[str, Any] = {}
    (code,) = [code for title, code in examples("python") if "Amazon" in title]
    exec(code, names)
    assert names["token"]("") == ("hidden-eu-west-1", 4e9)


def test_every_option_that_the_security_page_sets_or_names_is_one() -> None:
    known = {name for each in OPTIONS for name in (each.key, each.alias)}
    named = set(re.findall(r"`((?:ssl|sasl|https|enable)\.[a-z.]+)", TEXT))
    assert named - known <= {"sasl.jaas.config"}
    assert len(named) > 20
