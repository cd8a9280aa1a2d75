"""A wrong configuration of security costs one attempt and one line that says what to change.

RDMETA_QUIET_SECONDS says how long the log is watched for a second line; `make nightly` takes 30 s.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from contextlib import ExitStack
from typing import Any

import pytest
from log_lines import lines_about, other_lines, warnings
from shells import Maker
from waiting import PROMPT, until
from wrong_settings import CASES, ours

from rdmeta import MetadataCache, fetch
from rdmeta.errors import AuthenticationError, Error, MissingExtraError

# The second attempt comes at least 0.4 s after the first.
CALM = {"reconnect.backoff.ms": 500, "reconnect.backoff.max.ms": 10_000}


def quiet() -> float:
    """Returns for how many seconds the log is watched."""
    return float(os.environ.get("RDMETA_QUIET_SECONDS", 2.5))


def check(error: Error, name: str, address: str) -> None:
    """Checks that an error has the cause, the server and the key."""
    case = CASES[name]
    assert type(error) is case.error, error
    for words in (address, *case.says):
        assert words in str(error), (name, words)


@pytest.mark.parametrize("name", CASES)
def test_the_first_call_raises_the_cause_the_server_and_the_key_in_one_attempt(
    name: str, make: Maker
) -> None:
    case = CASES[name]
    with case.brokers() as brokers:
        client = make(brokers.bootstrap, {**CALM, **case.conf})
        begin = time.monotonic()
        with pytest.raises(Error) as caught:
            client.refresh(timeout=60)
        attempts = len(brokers[1].accepted)
        assert time.monotonic() - begin < PROMPT
        assert attempts <= 1
        check(caught.value, name, brokers[1].address)


@pytest.mark.parametrize("name", CASES)
def test_a_fetch_raises_the_cause_the_server_and_the_key_in_one_attempt(name: str) -> None:
    case = CASES[name]
    with case.brokers() as brokers:
        with pytest.raises(Error) as caught:
            fetch(MetadataCache(), brokers.bootstrap, conf=case.conf, timeout=60)
        assert len(brokers[1].accepted) <= 1
        check(caught.value, name, brokers[1].address)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_missing_extra_is_named_before_a_broker_is_tried(
    mechanism: str, make: Maker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.WARNING, "rdmeta")
    monkeypatch.setitem(sys.modules, "scramp", None)  # as if it were not installed
    conf = {**CASES["wrong password of SCRAM-SHA-512"].conf, "sasl.mechanism": mechanism}
    said = rf"{mechanism} needs more packages: pip install -e '\.\[sasl\]'"
    with CASES["unknown user"].brokers(3) as brokers:
        client = make(brokers.bootstrap, {**CALM, **conf})
        begin = time.monotonic()
        with pytest.raises(MissingExtraError, match=said) as caught:
            client.refresh(timeout=60)
        assert time.monotonic() - begin < PROMPT
        assert isinstance(caught.value, ImportError)
        with pytest.raises(MissingExtraError, match=said) as caught:
            fetch(MetadataCache(), brokers.bootstrap, conf=conf)
        assert str(caught.value).count("pip install") == 1
        until(lambda: warnings(caplog.records))  # a Client writes it a moment later, in its thread
        assert len(warnings(caplog.records)) == 1
        assert [len(broker.accepted) for broker in brokers] == [0, 0, 0]


@pytest.mark.slow
def test_no_second_line_is_logged_though_the_client_tries_again(
    make: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "rdmeta")
    with ExitStack() as stack:
        running = {name: stack.enter_context(case.brokers()) for name, case in CASES.items()}
        for name, brokers in running.items():
            conf = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 300}
            make(brokers.bootstrap, {**conf, **CASES[name].conf}, topics=["orders"]).start()
        time.sleep(quiet())
        records = list(caplog.records)
        attempts = {name: len(brokers[1].accepted) for name, brokers in running.items()}
    for name, brokers in running.items():
        own = lines_about(brokers[1].address, records)
        assert len(own) == 1, name
        assert all(words in own[0] for words in CASES[name].says), name
        assert attempts[name] > 1 or "a CA's file" in name, name
    assert other_lines([each[1].address for each in running.values()], records) == []


@pytest.mark.slow
def test_one_line_is_logged_for_three_brokers(
    make: Maker, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "rdmeta")
    case = CASES["wrong password of PLAIN"]
    with case.brokers(3) as brokers:
        conf = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 300, **case.conf}
        client = make(brokers.bootstrap, conf, topics=["orders"])
        with pytest.raises(AuthenticationError, match=r"sasl\.password"):
            client.refresh()
        time.sleep(1.0)
        assert all(broker.logins for broker in brokers)
        assert len(warnings(caplog.records)) == 1


def test_a_call_after_the_mistake_is_mended_succeeds(make: Maker) -> None:
    given = {"password": "wrong"}
    case = CASES["wrong password of PLAIN"]
    with case.brokers() as brokers:
        brokers.truth.create("orders")
        conf: dict[str, Any] = {**case.conf, "sasl.password": lambda: given["password"]}
        client = make(brokers.bootstrap, conf)
        with pytest.raises(AuthenticationError):
            client.refresh(["orders"])
        given["password"] = "secret"
        client.refresh(["orders"], timeout=20)
        assert client.cache.leader("orders", 0) == 1


def test_the_authority_of_the_right_certificate_lets_every_case_in(make: Maker) -> None:
    conf = {"security.protocol": "sasl_ssl", "ssl.ca.pem": ours.pem, "sasl.username": "alice"}
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        with CASES["unknown user"].brokers(3) as brokers:
            right = {**conf, "sasl.mechanism": mechanism, "sasl.password": "secret"}
            client = make(brokers.bootstrap, right)
            client.refresh()
            assert len(client.cache.brokers) == 3
