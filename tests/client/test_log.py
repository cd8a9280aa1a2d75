"""Log lines that repeat are counted."""

from __future__ import annotations

import logging

import pytest

from rdmeta.client.driver import Lines


class At:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def at() -> At:
    return At()


@pytest.fixture
def lines(at: At, caplog: pytest.LogCaptureFixture) -> Lines:
    caplog.set_level(logging.DEBUG)
    return Lines(logging.getLogger("rdmeta.client"), at)


def test_an_exception_of_a_handler_stops_nothing(
    lines: Lines, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(record: object) -> None:
        raise RuntimeError("the disk is full")

    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", refuse)
    logger = logging.getLogger("rdmeta.client")
    logger.addHandler(handler)
    try:
        lines.write_or_count(logging.WARNING, "broker 1: refused")
    finally:
        logger.removeHandler(handler)
    assert "the disk is full" in capsys.readouterr().err


def test_a_line_that_repeats_comes_every_30_s_with_its_count(
    lines: Lines, at: At, caplog: pytest.LogCaptureFixture
) -> None:
    for second in range(100):
        at.now = 100.0 + second
        lines.write_or_count(logging.WARNING, "broker 1: refused")
    assert caplog.messages == [
        "broker 1: refused",
        "broker 1: refused (29 times more in the last 30 s)",
        "broker 1: refused (29 times more in the last 30 s)",
        "broker 1: refused (29 times more in the last 30 s)",
    ]


def test_lines_that_differ_do_not_count_as_repeated(
    lines: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    for line in ("a", "b", "a", "b"):
        lines.write_or_count(logging.INFO, line)
    assert caplog.messages == ["a", "b"]


def test_a_line_that_comes_seldom_has_no_count(
    lines: Lines, at: At, caplog: pytest.LogCaptureFixture
) -> None:
    lines.write_or_count(logging.INFO, "a")
    at.now += 31
    lines.write_or_count(logging.INFO, "a")
    assert caplog.messages == ["a", "a"]


def test_ever_new_lines_do_not_fill_the_memory(lines: Lines, at: At) -> None:
    for n in range(5000):
        at.now += 0.001
        lines.write_or_count(logging.DEBUG, f"line {n}")
    assert len(lines._written) <= 512


def test_a_percent_sign_in_a_line_is_not_a_format(
    lines: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    lines.write_or_count(logging.INFO, "100 %s of it")
    assert caplog.messages == ["100 %s of it"]


def test_lines_that_count_as_the_same_are_written_once(
    lines: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    for broker in (1, 2, 3):
        lines.write_or_count(
            logging.WARNING, f"broker {broker}: wrong password", same="wrong password"
        )
    assert caplog.messages == ["broker 1: wrong password"]
