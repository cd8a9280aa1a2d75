"""tests/support/marked_secrets.py finds a secret in output, however it is written."""

from __future__ import annotations

import base64
import logging
import pickle
import time
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import pytest
from both_shells import KINDS, Shell
from certificates import Authority
from kafka_security import (
    ALICE,
    BOBS_PASSWORD,
    CAROLS_PASSWORD,
    MARK,
    MECHANISMS,
    PASSWORD,
    KafkaSecurity,
)
from marked_secrets import LogKeeper, Secrets, described

from rdmeta import Error
from rdmeta.net.oauth import unsecured_token

SECRET = f"{MARK}-word"


def token(data: bytes) -> bytes:
    """Returns claims as tokens have them."""
    return base64.urlsafe_b64encode(b'{"scope":["' + data + b'"]}').rstrip(b"=")


WRITTEN: dict[str, Callable[[bytes], object]] = {
    "as it is": bytes.decode,
    "as bytes": repr,
    "in hexadecimal": bytes.hex,
    "in a URL": lambda data: urllib.parse.quote(data),
    "pickled": lambda data: pickle.dumps(data.decode()),
    "in base64": lambda data: base64.b64encode(data).decode(),
    "in PLAIN's message": lambda data: base64.b64encode(b"\0alice\0" + data).decode(),
    "in Basic": lambda data: base64.b64encode(b"app:" + data).decode(),
    "in a message before others": lambda data: base64.b64encode(b"ab" + data + b"??>").decode(),
    "in a message with a token": lambda data: base64.b64encode(b"auth=Bearer " + token(data)),
    "in hexadecimal with a token": lambda data: (b"auth=Bearer " + token(data)).hex(),
    "in base64 of URLs": lambda data: base64.urlsafe_b64encode(b"\xff?" + data + b"??>").decode(),
}


def token_of(conf: dict[str, object]) -> str:
    """Returns the token of a client that no server signs."""
    return unsecured_token(str(conf["sasl.oauthbearer.config"]), time.time()).value.reveal()


def found(secrets: Secrets, text: str) -> bool:
    """Returns whether the search finds a secret in a text."""
    try:
        secrets.check(text)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("how", WRITTEN)
@pytest.mark.parametrize("secret", [SECRET, MARK])
def test_a_secret_is_found_however_it_is_written(how: str, secret: str) -> None:
    secrets = Secrets()
    secrets.add("the password", secret)
    assert found(secrets, f"a line\nwith {WRITTEN[how](SECRET.encode())} in it")
    assert not found(secrets, f"a line\nwith {WRITTEN[how](b'another-word-of-them')} in it")


def test_a_message_names_the_secret_that_is_shown() -> None:
    secrets = Secrets()
    secrets.add("the password", SECRET)
    with pytest.raises(AssertionError, match="the password is shown: it was m4rked-word"):
        secrets.check(f"it was {SECRET}")


def test_a_secret_that_is_found_by_chance_is_not_added() -> None:
    with pytest.raises(AssertionError, match="the pin"):
        Secrets().add("the pin", "12345")


def test_one_line_of_a_key_is_found() -> None:
    secrets = Secrets()
    identity = Authority().issue("alice")
    for key in (identity.key, identity.encrypted(SECRET)):
        assert not found(secrets, key)
        secrets.add_key("the key", key)
        for line in key.splitlines()[1:-2]:  # the last one may be short
            assert found(secrets, f"key: {line}\\n")
    assert not found(secrets, identity.certificate)


@pytest.mark.parametrize("place", ["argument", "cause", "attribute", "note of a context"])
def test_a_secret_in_an_exception_is_found(place: str) -> None:
    inner = RuntimeError(SECRET) if place != "attribute" else RuntimeError("a cause")
    error: BaseException = inner if place == "argument" else Error("it failed")
    if place == "cause":
        error.__cause__ = inner
    elif place == "attribute":
        error.extra = SECRET  # type: ignore[attr-defined]
    elif place == "note of a context":
        error.__context__ = inner
    secrets = Secrets()
    secrets.add("the mark", MARK)
    assert found(secrets, described(error))
    assert not found(secrets, described(Error("it failed")))


def test_a_secret_in_a_traceback_of_the_log_is_found() -> None:
    keeper, secrets = LogKeeper(), Secrets()
    secrets.add("the mark", MARK)
    log = logging.Logger("of a test", logging.DEBUG)
    log.addHandler(keeper)
    try:
        raise RuntimeError(SECRET)
    except RuntimeError:
        log.debug("it failed", exc_info=True)
    text = keeper.taken()
    assert "it failed" in text
    assert found(secrets, text)
    assert keeper.taken() == ""


@pytest.mark.parametrize("kind", KINDS)
def test_shells_log_what_their_clients_say_and_raise(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "both_shells")
    with Shell(kind, {"bootstrap.servers": "127.0.0.1:1", "client.id": "said"}) as shell:
        assert isinstance(shell.begin("refresh", timeout=0.3).exception(10), Error)
        shell.errors.append("a problem")
    assert "RequestTimedOutError" in caplog.text
    assert "'host': '127.0.0.1'" in caplog.text
    assert "a problem" in caplog.text


def test_the_secrets_of_real_clusters_are_found(tmp_path: Path) -> None:
    security = KafkaSecurity(tmp_path)
    certificate = security.certificate("alice")
    encrypted = security.certificate("amy", password=f"{MARK}-key")
    keys = [Path(str(conf["ssl.key.location"])).read_text() for conf in (certificate, encrypted)]
    shown = [PASSWORD, BOBS_PASSWORD, CAROLS_PASSWORD, *keys]
    shown += [str(security.conf(each).get("sasl.password", PASSWORD)) for each in MECHANISMS]
    shown += [str(security.only(each).get("sasl.password", PASSWORD)) for each in MECHANISMS]
    shown += [str(encrypted["ssl.key.password"]), security.signer.token(ALICE, 60.0)]
    for conf in (security.conf("OAUTHBEARER"), security.only("OAUTHBEARER")):
        shown.append(token_of(conf))
    assert [text for text in shown if not found(security.secrets, text)] == []
