"""The wrong configurations that tests/real tries, and their page, docs/reference/errors.md.

`make scenarios` runs each one against real Kafka, keeps what both clients raise in
tests/real/connect.json, and writes the page from that. Run as a program, this module does only the
last. A run in which a client raises another text fails.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests" / "real" / "connect.json"
PAGE = ROOT / "docs/reference/errors.md"

Texts = dict[str, dict[str, str]]

# The page shows these for values that are different in each run.
SHOWN = {
    "{ca}": "/etc/kafka/ca.pem",
    "{other_ca}": "/etc/kafka/other-ca.pem",
    "{strange_certificate}": "/etc/kafka/strange.pem",
    "{strange_key}": "/etc/kafka/strange.key",
    "{old_certificate}": "/etc/kafka/old.pem",
    "{old_key}": "/etc/kafka/old.key",
    "{password}": "...",
    "{wrong}": "(another)",
    "{token_url}": "https://login.example/token",
    "{down_url}": "https://down.example/token",
    "{slow_url}": "https://slow.example/token",
    "{lost_url}": "https://login.example/nothing",
    "{forged_url}": "https://forger.example/token",
    "{secret}": "...",
}

TLS = {"security.protocol": "ssl", "ssl.ca.location": "{ca}"}
SCRAM = {
    "security.protocol": "sasl_ssl",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.username": "alice",
    "sasl.password": "{password}",
    "ssl.ca.location": "{ca}",
}
OIDC = {
    "security.protocol": "sasl_plaintext",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": "{token_url}",
    "sasl.oauthbearer.client.id": "alice",
    "sasl.oauthbearer.client.secret": "{secret}",
}


class Case(NamedTuple):
    """One wrong configuration.

    `port` is what it connects to: a listener's name, or "http", "ssh", "zookeeper", "controller" or
    "nothing". `says` are words that the error must have; `change` is what the page advises. `host`
    is the name by which the client knows the server. `conf` has the keys of SHOWN as values.
    `timeout`, in seconds, is that of the first call.
    """

    key: str
    wrong: str
    change: str
    port: str
    conf: Mapping[str, str]
    says: tuple[str, ...]
    host: str = "127.0.0.1"
    timeout: float = 20.0

    @property
    def server(self) -> str:
        """The server as the page shows it."""
        return f"{'kafka-1.example' if self.host == '127.0.0.1' else self.host}:9093"

    @property
    def scenario(self) -> str | None:
        """The scenario to which its times belong; None if they belong to none of this run."""
        if self.key == "token-slow":  # "token-slow" has its times, from a run with working clients
            return None
        if self in SERVERS:
            return "no-server"
        if self.conf.get("sasl.mechanism") == "OAUTHBEARER":
            return "no-token"
        return "wrong-port" if self in PORTS else "refused"


class Group(NamedTuple):
    """Cases under one heading of the page."""

    heading: str
    cases: tuple[Case, ...]


def _without(conf: Mapping[str, str], *keys: str) -> dict[str, str]:
    return {key: value for key, value in conf.items() if key not in keys}


_PASSWORD = "Set `sasl.username` and `sasl.password` to what the broker has."
GROUPS = (
    Group(
        "The server",
        (
            Case(
                "nothing-listens",
                "Nothing listens on the port.",
                "Correct `bootstrap.servers`, or start the broker. It may be about to start,"
                " so a call waits until its time-out: here 3 s.",
                "nothing",
                {},
                ("cannot connect", "Connection refused", "bootstrap.servers"),
                timeout=3.0,
            ),
            Case(
                "no-host",
                "There is no such host name.",
                "Correct `bootstrap.servers`, or the DNS. The name may be about to come, so a call"
                " waits until its time-out: here 3 s.",
                "PLAINTEXT",
                {},
                ("no such host", "bootstrap.servers"),
                host="kafka-1.invalid",
                timeout=3.0,
            ),
        ),
    ),
    Group(
        "Logins",
        (
            Case(
                "password",
                "The password is wrong (SCRAM).",
                _PASSWORD,
                "SECURE",
                {**SCRAM, "sasl.password": "{wrong}"},
                ("SASL_AUTHENTICATION_FAILED", "sasl.username and sasl.password"),
            ),
            Case(
                "plain-password",
                "The password is wrong (PLAIN).",
                _PASSWORD,
                "SECURE",
                {**SCRAM, "sasl.mechanism": "PLAIN", "sasl.password": "{wrong}"},
                ("Invalid username or password", "sasl.username and sasl.password"),
            ),
            Case(
                "user",
                "There is no such user.",
                _PASSWORD,
                "SECURE",
                {**SCRAM, "sasl.username": "carl"},
                ("SASL_AUTHENTICATION_FAILED", "sasl.username and sasl.password"),
            ),
            Case(
                "mechanism",
                "The listener does not enable the mechanism.",
                "Set `sasl.mechanism` to one that the error lists.",
                "SASL",
                {
                    **_without(SCRAM, "ssl.ca.location"),
                    "security.protocol": "sasl_plaintext",
                    "sasl.mechanism": "SCRAM-SHA-256",
                },
                ("does not enable SCRAM-SHA-256", "PLAIN, SCRAM-SHA-512", "sasl.mechanism"),
            ),
        ),
    ),
    Group(
        "Certificates",
        (
            Case(
                "ca",
                "`ssl.ca.location` has another CA than the brokers'.",
                "Set `ssl.ca.location` to the certificate of the CA that the error names.",
                "SECURE",
                {**SCRAM, "ssl.ca.location": "{other_ca}"},
                ("not trusted", "the brokers' CA", "ssl.ca.location"),
            ),
            Case(
                "no-ca",
                "`ssl.ca.location` is missing, and the brokers have a CA of their own.",
                "Set `ssl.ca.location`. Without it, the system's certificates are trusted.",
                "SECURE",
                _without(SCRAM, "ssl.ca.location"),
                ("not trusted", "ssl.ca.location", "the system's"),
            ),
            Case(
                "host",
                "The certificate is not for the host in `bootstrap.servers`.",
                "Use a name that the certificate has, or add the name to the certificate.",
                "ONEWAY",
                TLS,
                ("not for", "localhost", "127.0.0.1", "bootstrap.servers"),
                host="other.example",
            ),
            Case(
                "expired",
                "The broker's certificate has expired.",
                "Renew it on the broker. If it is good, correct the clock of the client.",
                "EXPIRED",
                TLS,
                ("expired", "Feb  3 00:00:00 2001", "renew it"),
            ),
            Case(
                "no-certificate",
                "The listener wants a client certificate, and none is set.",
                "Set `ssl.certificate.location` and `ssl.key.location`.",
                "MUTUAL",
                TLS,
                ("client certificate", "ssl.certificate.location"),
            ),
            Case(
                "strange-certificate",
                "The brokers do not trust the CA of the client certificate.",
                "Use a certificate of a CA in the brokers' `ssl.truststore.location`.",
                "MUTUAL",
                {
                    **TLS,
                    "ssl.certificate.location": "{strange_certificate}",
                    "ssl.key.location": "{strange_key}",
                },
                ("refuses the client certificate", "ssl.certificate.location"),
            ),
            Case(
                "old-certificate",
                "The client certificate has expired.",
                "Renew the client certificate. A file that was replaced is read again.",
                "MUTUAL",
                {
                    **TLS,
                    "ssl.certificate.location": "{old_certificate}",
                    "ssl.key.location": "{old_key}",
                },
                ("refuses the client certificate", "ssl.certificate.location", "expired"),
            ),
        ),
    ),
    Group(
        "The port of another protocol",
        (
            Case(
                "plaintext-to-tls",
                "The port wants TLS, and the client speaks PLAINTEXT.",
                "Set `security.protocol` to `ssl`, or to `sasl_ssl` if the listener wants SASL.",
                "ONEWAY",
                {},
                ("TLS", "security.protocol"),
            ),
            Case(
                "sasl-plaintext-to-tls",
                "The port wants TLS, and the client logs in without it.",
                "Set `security.protocol` to `sasl_ssl`.",
                "SECURE",
                {**_without(SCRAM, "ssl.ca.location"), "security.protocol": "sasl_plaintext"},
                ("TLS", "security.protocol=sasl_ssl"),
            ),
            Case(
                "tls-to-plaintext",
                "The port speaks PLAINTEXT, and the client TLS.",
                "Set `security.protocol` to `plaintext`, or use the port of TLS.",
                "PLAINTEXT",
                TLS,
                ("not to speak TLS", "security.protocol"),
            ),
            Case(
                "sasl-tls-to-plaintext",
                "The port speaks SASL without TLS, and the client TLS.",
                "Set `security.protocol` to `sasl_plaintext`, or use the port of TLS.",
                "SASL",
                SCRAM,
                ("not to speak TLS", "sasl_plaintext"),
            ),
            Case(
                "no-sasl",
                "The port wants SASL, and the client does not log in.",
                "Set `security.protocol` to `sasl_plaintext`, and the options of a login.",
                "SASL",
                {},
                ("SASL", "security.protocol=sasl_plaintext", "sasl.mechanism"),
            ),
            Case(
                "no-sasl-over-tls",
                "The port wants TLS and SASL, and the client only speaks TLS.",
                "Set `security.protocol` to `sasl_ssl`, and the options of a login.",
                "SECURE",
                TLS,
                ("SASL", "security.protocol=sasl_ssl", "sasl.mechanism"),
            ),
            Case(
                "needless-sasl",
                "The client logs in, and the port wants no login.",
                "Set `security.protocol` to `plaintext`, or use the port of SASL.",
                "PLAINTEXT",
                {**_without(SCRAM, "ssl.ca.location"), "security.protocol": "sasl_plaintext"},
                ("expects no SASL login", "security.protocol=plaintext"),
            ),
            Case(
                "controller",
                "The port is that of a KRaft controller.",
                "Set `bootstrap.servers` to the brokers' ports.",
                "controller",
                {},
                ("KRaft controller", "bootstrap.servers"),
            ),
            Case(
                "zookeeper",
                "The port is ZooKeeper's.",
                "Set `bootstrap.servers` to the brokers' ports.",
                "zookeeper",
                {},
                ("closed the connection", "security.protocol", "ZooKeeper", "bootstrap.servers"),
            ),
            Case(
                "http",
                "The port is an HTTP server's, as that of Schema Registry.",
                "Set `bootstrap.servers` to the brokers' ports.",
                "http",
                {},
                ("HTTP", "bootstrap.servers"),
            ),
            Case(
                "tls-to-http",
                "The same, with TLS.",
                "Set `bootstrap.servers` to the brokers' ports.",
                "http",
                TLS,
                ("HTTP", "bootstrap.servers"),
            ),
            Case(
                "ssh",
                "The port is that of SSH.",
                "Set `bootstrap.servers` to the brokers' ports.",
                "ssh",
                {},
                ("SSH", "bootstrap.servers"),
            ),
            Case(
                "tls-to-ssh",
                "The same, with TLS.",
                "Set `bootstrap.servers` to the brokers' ports.",
                "ssh",
                TLS,
                ("SSH", "bootstrap.servers"),
            ),
        ),
    ),
    Group(
        "Tokens (OAUTHBEARER)",
        (
            Case(
                "token-secret",
                "The token endpoint refuses the client.",
                "Set `sasl.oauthbearer.client.id` and `sasl.oauthbearer.client.secret`.",
                "SIGNED",
                {**OIDC, "sasl.oauthbearer.client.secret": "{wrong}"},
                ("HTTP 401", "invalid_client", "sasl.oauthbearer.client.secret"),
            ),
            Case(
                "token-down",
                "Nothing listens at the token endpoint.",
                "Correct `sasl.oauthbearer.token.endpoint.url`. The client tries again by itself.",
                "SIGNED",
                {**OIDC, "sasl.oauthbearer.token.endpoint.url": "{down_url}"},
                ("cannot be reached", "sasl.oauthbearer.token.endpoint.url"),
            ),
            Case(
                "token-slow",
                "The token endpoint does not answer.",
                "Correct `sasl.oauthbearer.token.endpoint.url`. The client tries again by itself.",
                "SIGNED",
                {**OIDC, "sasl.oauthbearer.token.endpoint.url": "{slow_url}"},
                ("gave no answer in 10 s", "sasl.oauthbearer.token.endpoint.url"),
            ),
            Case(
                "token-url",
                "The URL is not that of a token endpoint.",
                "Correct `sasl.oauthbearer.token.endpoint.url`.",
                "SIGNED",
                {**OIDC, "sasl.oauthbearer.token.endpoint.url": "{lost_url}"},
                ("HTTP 404", "sasl.oauthbearer.token.endpoint.url"),
            ),
            Case(
                "token-refused",
                "The broker refuses the token: another server has signed it.",
                "Set `sasl.oauthbearer.token.endpoint.url` to the server that the brokers trust.",
                "SIGNED",
                {**OIDC, "sasl.oauthbearer.token.endpoint.url": "{forged_url}"},
                ("refuses the OAUTHBEARER login", "invalid_token"),
            ),
        ),
    ),
)
CASES = tuple(case for group in GROUPS for case in group.cases)
SERVERS, LOGINS, PORTS = GROUPS[0].cases, GROUPS[1].cases, GROUPS[3].cases


def load() -> Texts:
    """Returns the texts of the last run: by brokers, then by the key of the case."""
    found: Texts = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return found


def write(new: Texts) -> None:
    """Keeps the texts of a run, and writes the page."""
    found = {**load(), **new}
    RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(found), encoding="utf-8")


# ---- the page -----------------------------------------------------------------------------------

HEAD = """\
# When it does not connect

<!-- `make scenarios` writes this page from tests/real/connect.json: do not edit it. -->

If a client cannot connect, its first call raises an error with the cause, the server, and what to
change. A cause that the client cannot mend costs one attempt. The client logs the same cause as a
warning of the logger `rdmeta.client`, and goes on trying. If it repeats, it is logged again after
30 s at the earliest, with a count. `rdmeta config --check` tries each step with every server.

If nothing listens on a server's port, or its name is unknown, the server may be about to start. So
a call of a client waits until its time-out (`max.block.ms` if it has none), and then raises
`RequestTimedOutError` with the cause. `fetch()` raises the cause at once. SCRAM without its package
is the error `SASL mechanism SCRAM-SHA-512 needs more packages: pip install 'rdmeta[sasl]'`.

Some mistakes are found before the client connects: an unknown option, a wrong value, or a
contradiction. They raise one `ConfigError` when the client is made; [options.md](options.md) lists
the options.

The messages below are real: `make scenarios` tries each configuration with both clients on Apache
Kafka, and compares what they raise with this page. The brokers' certificates are for `127.0.0.1`
and `localhost`.

"""


def properties(case: Case) -> str:
    """Returns a configuration as the page shows it."""
    conf = {"bootstrap.servers": case.server, **case.conf}
    return "\n".join(f"{key} = {SHOWN.get(value, value)}" for key, value in conf.items())


def block(text: str) -> str:
    """Returns a text in a fence, in lines of 100 characters at most."""
    folded = [
        textwrap.fill(line, 100, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    ]
    return "\n".join(["```text", *folded, "```\n"])


def section(case: Case, texts: Texts) -> str:
    """Returns the part of the page about a case."""
    raised: dict[str, list[str]] = {}
    for brokers in sorted(texts, reverse=True):
        if case.key in texts[brokers]:
            raised.setdefault(texts[brokers][case.key], []).append(brokers)
    out = [f"### {case.wrong.rstrip('.')}\n", block(properties(case))]
    for text, versions in raised.items():
        out.append(f"What {' and '.join(versions)} leads to:\n" if len(raised) > 1 else "Raised:\n")
        out.append(block(text))
    return "\n".join([*out, f"{textwrap.fill(case.change, 100)}\n"])


def page(texts: Texts) -> str:
    """Returns docs/reference/errors.md."""
    parts = []
    for group in GROUPS:
        parts.append(f"## {group.heading}\n")
        parts += [section(case, texts) for case in group.cases]
    return HEAD + "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(load()), encoding="utf-8")
