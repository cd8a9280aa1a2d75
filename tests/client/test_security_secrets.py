"""No secret is in a log line, an exception, a repr, a statistic or a pickle, whatever happens.

Each scenario runs with marked secrets and the log at DEBUG. Then all output is searched.
"""

from __future__ import annotations

import base64
import gc
import io
import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from broker import Brokers
from certificates import Authority
from login_server import LoginServer, Step
from secured import Guard
from shells import Maker
from token_server import TokenServer

import rdmeta
from rdmeta import MetadataCache, config, fetch
from rdmeta.errors import Error

PACKAGE = Path(rdmeta.__file__).parent
ours = Authority()
PASSWORD, WRONG = "pass-MARKED-word", "wrong-MARKED-word"
CLIENT_SECRET, KEY_PASSWORD = "client-MARKED-secret", "key-MARKED-password"
IDENTITY = ours.issue("alice@example.org")
KEY_LINE = IDENTITY.key.splitlines()[2]
ENCRYPTED = IDENTITY.encrypted(KEY_PASSWORD)
# Parts of each secret, as it is and in base64: no output may show them.
MARKS = (
    "MARKED",
    KEY_LINE,
    ENCRYPTED.splitlines()[2],
    base64.b64encode(f"app:{CLIENT_SECRET}".encode()).decode(),
    base64.b64encode(PASSWORD.encode()).decode().rstrip("="),
)


class Echo(LoginServer):
    """A broker that shows what it was sent in its refusals."""

    def begin(self, mechanism: str) -> Callable[[bytes], Step]:
        taken = super().begin(mechanism)

        def take(message: bytes) -> Step:
            step = taken(message)
            said = message.decode().replace("\0", " ").replace("\1", " ")
            if mechanism == "OAUTHBEARER" and message != b"\1" and step.data:
                return Step(None, json.dumps({"status": f"refused {said}"}).encode())
            return step if step.refusal is None else Step(f"{step.refusal}: you sent {said}")

        return take


class Output:
    """Everything that a scenario has shown."""

    def __init__(self) -> None:
        self.text = io.StringIO()
        self.raised: BaseException | None = None

    def show(self, what: object) -> None:
        print(what, file=self.text)

    def error(self, error: BaseException) -> None:
        """Takes an exception and its pickle."""
        each: BaseException | None = error
        while each is not None:
            self.show(repr(each))
            self.show(each.args)
            self.show(vars(each))
            each = each.__cause__ or each.__context__
        self.show("".join(traceback.format_exception(error)))
        with suppress(TypeError, pickle.PicklingError):
            self.show(pickle.dumps(error))

    def frames(self, error: BaseException) -> None:
        """Takes the local variables of this package's frames, as tools that report errors do."""
        each: BaseException | None = error
        while each is not None:
            for frame, _ in traceback.walk_tb(each.__traceback__):
                if PACKAGE in Path(frame.f_code.co_filename).parents:
                    self.show((frame.f_code.co_name, frame.f_locals))
            each = each.__cause__ or each.__context__

    @contextmanager
    def expected(self, is_good: bool) -> Iterator[None]:
        """Takes the error of the block, which must raise one unless `is_good`."""
        if is_good:
            yield
            return
        with pytest.raises(Error) as caught:
            yield
        self.error(caught.value)
        self.raised = caught.value

    def objects(self) -> None:
        """Takes the repr and the pickle of every object of this package that is alive."""
        for each in gc.get_objects():
            module = type(each).__module__  # of some types it is no text
            if isinstance(module, str) and module.split(".")[0] == "rdmeta":
                self.show(repr(each))
                with suppress(Exception):
                    self.show(pickle.dumps(each))


@pytest.fixture
def output(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Iterator[Output]:
    """Yields what the test adds to; at its end all output is searched."""
    caplog.set_level(logging.DEBUG)
    found = Output()
    yield found
    out, err = capfd.readouterr()
    text = "\n".join((found.text.getvalue(), caplog.text, out, err))
    assert text.strip()
    for mark in MARKS:
        where = text.find(mark)
        assert where < 0, text[max(0, where - 300) : where + 100]


class Scenario(NamedTuple):
    """Options of security, and whether the client gets an answer with them."""

    conf: dict[str, Any]
    is_good: bool


def raising() -> str:
    raise RuntimeError(f"no vault has {PASSWORD}")


def bad_token(conf: str) -> tuple[Any, ...]:
    raise ValueError(f"cannot exchange {conf} for a token with {CLIENT_SECRET}")


def login(mechanism: str, password: object = PASSWORD) -> dict[str, Any]:
    return {"sasl.mechanism": mechanism, "sasl.username": "alice", "sasl.password": password}


def tokens(**more: Any) -> dict[str, Any]:
    return {"sasl.mechanism": "OAUTHBEARER", **{k.replace("_", "."): v for k, v in more.items()}}


def jaas(mechanism: str, module: str, password: str) -> dict[str, Any]:
    name = f"org.apache.kafka.common.security.{module} required"
    text = f'{name} username="alice" password="{password}";'
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": text}


TOKEN = tokens() | {"oauth_cb": lambda conf: ("good-MARKED-token", 2e10, "alice")}
OIDC = tokens(sasl_oauthbearer_client_id="app", sasl_oauthbearer_client_secret=CLIENT_SECRET) | {
    "sasl.oauthbearer.token.endpoint.url": "URL"
}
SCENARIOS = {
    "PLAIN": Scenario(login("PLAIN"), True),
    "SCRAM-SHA-256": Scenario(login("SCRAM-SHA-256"), True),
    "SCRAM-SHA-512": Scenario(login("SCRAM-SHA-512", lambda: PASSWORD), True),
    "JAAS": Scenario(jaas("PLAIN", "plain.PlainLoginModule", PASSWORD), True),
    "wrong PLAIN": Scenario(login("PLAIN", WRONG), False),
    "wrong SCRAM-SHA-512": Scenario(login("SCRAM-SHA-512", WRONG), False),
    "wrong JAAS": Scenario(jaas("PLAIN", "plain.PlainLoginModule", WRONG), False),
    "PLAIN with a NUL": Scenario(login("PLAIN", lambda: f"{PASSWORD}\0"), False),
    "no Unicode": Scenario(login("SCRAM-SHA-512", lambda: f"{PASSWORD}\udc80"), False),
    "a callable that raises": Scenario(login("PLAIN", raising), False),
    "a callable of bytes": Scenario(login("PLAIN", PASSWORD.encode), False),
    "a callable of two lines": Scenario(login("PLAIN", lambda: f"{PASSWORD}\n"), False),
    "oauth_cb": Scenario(TOKEN, True),
    "a refused token": Scenario({**TOKEN, "oauth_cb": lambda c: ("bad-MARKED-token", 2e10)}, False),
    "an expired token": Scenario({**TOKEN, "oauth_cb": lambda c: ("bad-MARKED-token", 2.0)}, False),
    "no token": Scenario({**TOKEN, "oauth_cb": lambda c: ("bad MARKED token", 2e10)}, False),
    "wrong extensions": Scenario(
        {**TOKEN, "oauth_cb": lambda c: ("good-MARKED-token", 2e10, "", {"traceId": "\0"})}, False
    ),
    "oauth_cb that raises": Scenario(
        {**TOKEN, "oauth_cb": bad_token, "sasl.oauthbearer.config": "a-MARKED-config"}, False
    ),
    "OIDC": Scenario(OIDC, True),
    "OIDC with a wrong secret": Scenario(
        {**OIDC, "sasl.oauthbearer.client.secret": "wrong-MARKED-secret"}, False
    ),
    "a configuration of tokens without names": Scenario(
        {
            **tokens(),
            "enable.sasl.oauthbearer.unsecure.jwt": True,
            "sasl.oauthbearer.config": lambda: f"principal=alice {PASSWORD}==",
        },
        False,
    ),
    "a client certificate": Scenario(
        {
            "security.protocol": "ssl",
            "ssl.certificate.pem": IDENTITY.certificate,
            "ssl.key.pem": ENCRYPTED,
            "ssl.key.password": KEY_PASSWORD,
        },
        False,  # SASL is missing
    ),
    "a wrong password of the key": Scenario(
        {
            **login("PLAIN"),
            "ssl.certificate.pem": IDENTITY.certificate,
            "ssl.key.pem": ENCRYPTED,
            "ssl.key.password": "wrong-MARKED-password",
        },
        False,
    ),
    "a key that is not the certificate's": Scenario(
        {
            **login("PLAIN"),
            "ssl.certificate.pem": ours.issue("bob@example.org").certificate,
            "ssl.key.pem": lambda: IDENTITY.key,
        },
        False,
    ),
    "a key that is no Unicode": Scenario(
        {
            **login("PLAIN"),
            "ssl.certificate.pem": IDENTITY.certificate,
            "ssl.key.pem": lambda: f"{IDENTITY.key}\udcff",
        },
        False,
    ),
    "a damaged key": Scenario(
        {
            **login("PLAIN"),
            "ssl.certificate.pem": IDENTITY.certificate,
            "ssl.key.pem": IDENTITY.key.replace(KEY_LINE, KEY_LINE[:-8]),
        },
        False,
    ),
}


@pytest.fixture
def servers() -> Iterator[tuple[Brokers, TokenServer]]:
    """Yields brokers that show what they are sent, and a token server that does."""
    logins = Echo({"alice": PASSWORD}, tokens={"good-MARKED-token"})
    guard = Guard(ours.server("127.0.0.1"), logins, delay=0.01)
    with (
        Brokers(1, guard=guard) as brokers,
        TokenServer("app", CLIENT_SECRET, tokens=logins.tokens) as server,
    ):
        server.echo = True
        yield brokers, server


def conf_of(name: str, server: TokenServer) -> dict[str, Any]:
    conf = {"security.protocol": "sasl_ssl", "ssl.ca.pem": ours.pem, **SCENARIOS[name].conf}
    return {key: server.url if value == "URL" else value for key, value in conf.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_client_shows_no_secret(
    name: str, make: Maker, output: Output, servers: tuple[Brokers, TokenServer]
) -> None:
    brokers, server = servers
    conf = {**conf_of(name, server), "reconnect.backoff.ms": 100}
    client = make(brokers.bootstrap, conf)
    problems: list[Any] = []
    client.on_error(problems.extend)
    with output.expected(SCENARIOS[name].is_good):
        client.refresh(timeout=20)
    for problem in list(problems):
        output.error(problem.error)
        output.frames(problem.error)
    if output.raised is not None:
        output.frames(output.raised)
    output.show(json.dumps(client.stats(), default=str))
    output.objects()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_fetch_shows_no_secret(
    name: str, output: Output, servers: tuple[Brokers, TokenServer]
) -> None:
    brokers, server = servers
    conf = conf_of(name, server)
    output.show(config.parse({"bootstrap.servers": brokers.bootstrap, **conf}))
    with output.expected(SCENARIOS[name].is_good):
        fetch(MetadataCache(), brokers.bootstrap, conf=conf, timeout=20)
    if output.raised is not None and output.raised.__cause__ is not None:
        output.frames(output.raised.__cause__)  # the caller's own frames have its configuration


@pytest.mark.parametrize(
    "wrong",
    [
        {"sasl.mechanism": "GSSAPI"},
        {"sasl.mechanism": "PLAIN", "sasl.pasword": PASSWORD},
        {"sasl.mechanism": "PLAIN", "sasl.username": PASSWORD.encode()},
        {"sasl.jaas.config": f'PlainLoginModule required password="{PASSWORD};'},
        {"sasl.jaas.config": f"{PASSWORD}"},
        {"sasl.password": ""},
        {"ssl.key.password": KEY_PASSWORD},
        {"ssl.key.pem": IDENTITY.key},
        {"ssl.keystore.type": "PEM", "ssl.keystore.key": IDENTITY.key},
        {"sasl.oauthbearer.client.secret": CLIENT_SECRET, "sasl.mechanism": "OAUTHBEARER"},
        {"sasl.oauthbearer.token.endpoint.url": f"http://a:{PASSWORD}@b/", **tokens()},
        {"sasl.oauthbearer.config": f"{PASSWORD} =", **tokens()},
    ],
)
def test_a_configuration_that_is_refused_shows_no_secret(
    wrong: dict[str, Any], output: Output
) -> None:
    conf = {
        "bootstrap.servers": "localhost:1",
        "security.protocol": "sasl_ssl",
        **login("PLAIN"),
        **wrong,
    }
    with suppress(Error):
        try:
            output.show(config.parse(conf))
        except Error as error:
            output.show(f"{error!r} {error.__cause__!r} {error.__context__!r}")
            raise
