"""Lines on stderr, and the exit code of each error."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import commands
import pytest
from broker import Brokers
from in_process import Running, unchanged
from login_server import LoginServer
from secured import Guard

from rdmeta import errors
from rdmeta.cli.messages import BadInputError, Messages


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UnknownTopicError("x"), 1),
        (errors.ConfigError("x"), 2),
        (errors.ArgumentError("x"), 2),
        (errors.MissingExtraError("x"), 2),
        (BadInputError("x"), 2),
        (ValueError("x"), 2),
        (OSError(28, "x"), 2),
        (errors.TransportError("x"), 3),
        (errors.AuthenticationError("x"), 3),
        (errors.TlsError("x"), 3),
        (errors.RequestTimedOutError("x"), 3),
        (errors.NoBrokersError("x"), 3),
        (errors.UnsupportedVersionError("x"), 3),
        (errors.MalformedError("x"), 3),
        (errors.TopicAuthorizationError("x"), 3),
        (errors.from_code(-1), 3),
    ],
)
def test_each_error_is_one_line_and_has_an_exit_code(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Messages().failure(error) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("rdmeta: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (errors.TransportError("a:1: cannot connect"), "; check bootstrap.servers"),
        (errors.TlsError("a:1: not trusted: set ssl.ca.location"), ""),
        (errors.AuthenticationError("a:1: refused; check sasl.password"), ""),
        (
            errors.RequestTimedOutError("a:1: no answer in time"),
            "; check bootstrap.servers, or give it longer with --timeout",
        ),
        (errors.UnsupportedVersionError("a:1: too old"), ""),
        (BadInputError("bad"), ""),
    ],
)
def test_an_error_says_which_key_to_check(
    error: Exception, advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Messages().failure(error)
    assert capsys.readouterr().err == f"rdmeta: {error}{advice}\n"


def test_a_file_that_fails_is_named_without_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    Messages().failure(FileNotFoundError(2, "No such file or directory", "a/b"), "prod")
    assert capsys.readouterr().err == "rdmeta: prod: a/b: No such file or directory\n"


def test_v_adds_the_causes(capsys: pytest.CaptureFixture[str]) -> None:
    messages = Messages()
    messages.level = 1
    error = errors.TransportError("no answer")
    error.__cause__ = OSError("bottom")
    error.__cause__.__context__ = error  # a cycle does not matter
    messages.failure(error)
    assert capsys.readouterr().err == (
        "rdmeta: no answer; check bootstrap.servers\nrdmeta:   because of OSError: bottom\n"
    )


def test_a_defect_of_the_program_is_shown_with_its_place(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert Messages().failure(ZeroDivisionError("x")) == 3
    assert "ZeroDivisionError: x" in capsys.readouterr().err


def test_q_leaves_out_what_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    messages = Messages()
    messages.level = -1
    messages.note("a note")
    messages.fault("an error")
    assert capsys.readouterr().err == "rdmeta: an error\n"


def test_a_text_from_a_server_sends_no_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Messages().fault("bad\x1b[2J\nname\udcff")
    assert capsys.readouterr().err == "rdmeta: bad\\x1b[2J\\nname\\udcff\n"


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """Yields the logger of the package; all loggers get their settings back."""
    with unchanged():
        yield logging.getLogger("rdmeta")


@pytest.mark.parametrize(
    ("level", "quietly", "shown"),
    [
        (-1, False, "E"),
        (0, False, "WE"),
        (1, False, "IWE"),
        (2, False, "DIWE"),
        (0, True, "E"),
        (1, True, "IWE"),
    ],
)
def test_the_log_is_shown_as_loudly_as_wanted(
    level: int,
    quietly: bool,
    shown: str,
    logger: logging.Logger,
    capsys: pytest.CaptureFixture[str],
) -> None:
    messages = Messages()
    messages.level = level
    messages.log(quietly=quietly)
    child = logging.getLogger("rdmeta.client")
    child.debug("D")
    child.info("%s", "I")
    child.warning("W")
    child.error("E")
    assert capsys.readouterr().err == "".join(f"rdmeta: {each}\n" for each in shown)


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "--under-min-isr", "--operations"],
        ["image", "save", "state"],
        ["quorum"],
        ["quorum", "--watch", "--every", "0.05"],
        ["wait", "-t", "orders"],
        ["watch"],
        ["record", "-o", "history", "--every", "0.05", "--for", "0.2"],
        ["publish", "state", "--every", "0.05", "--for", "0.2"],
        ["config", "--check"],
        ["config"],
    ],
    ids=" ".join,
)
def test_a_password_that_is_sent_in_the_clear_is_a_line_once(
    words: list[str], tmp_path: Path
) -> None:
    guard = Guard(None, LoginServer({"alice": "secret"}))
    with Brokers(1, guard=guard) as brokers:
        brokers.truth.create("orders")
        env = {
            "RDMETA_BOOTSTRAP": brokers.bootstrap,
            "RDMETA_SECURITY_PROTOCOL": "sasl_plaintext",
            "RDMETA_SASL_MECHANISM": "PLAIN",
            "RDMETA_SASL_USERNAME": "alice",
            "RDMETA_SASL_PASSWORD": "secret",
        }
        ends = (
            None
            if words[-1] != "watch" and "--watch" not in words
            else Running.interrupt_after_a_line
        )
        said, quiet = (
            commands.run(*words, *more, env=env, cwd=tmp_path, meanwhile=ends)
            for more in ([], ["-q"])
        )
    assert {said.code, quiet.code} == {130 if ends else 0}
    assert said.err.startswith(
        "rdmeta: security.protocol is sasl_plaintext and sasl.mechanism PLAIN"
    )
    assert (said.err.count("\n"), quiet.err) == (1, "")
