"""The scenarios of tests/real: what is expected, what runs have seen, and the page about both.

`make scenarios` runs each scenario five times, merges what it saw into tests/real/scenarios.json,
and writes docs/internals/scenarios.md. `python tests/support/scenarios.py` does only the last.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests" / "real" / "scenarios.json"
PAGE = ROOT / "docs/internals/scenarios.md"
# The rounds of a run that may write the page.
ROUNDS = 5
CLIENTS = ("Client", "AsyncClient")

Row = dict[str, Any]


class Scenario(NamedTuple):
    """A row of the page.

    `seen` says what the values are; `unit` is "s", "hedges" or what is counted. `median`, `worst`
    and `least` are the expected bounds of the values, None if they are only reported. A row with
    `least` and without `worst` shows its smallest value as the worst.
    """

    key: str
    scenario: str
    expected: str
    seen: str
    unit: str = "s"
    median: float | None = None
    worst: float | None = None
    least: float | None = None

    def worst_of(self, values: Sequence[float]) -> float:
        """Returns the value that the page shows as the worst one."""
        return min(values) if self.worst is None and self.least is not None else max(values)

    def allows(self, value: float, slack: float = 0.0) -> bool:
        """Returns whether a value is within `worst`, plus `slack`, and `least`."""
        is_late = self.worst is not None and value > self.worst + slack
        return not is_late and (self.least is None or value >= self.least)


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "killed-told",
        "A leader is killed (SIGKILL); the application reports it",
        "the new leader within 1.3 x `retry.backoff.max.ms` of the first broker's word, worst 2 x",
        "time since the first broker's word",
        median=1.3,
        worst=2.0,
    ),
    Scenario(
        "killed-broke",
        "The same; a connection to it broke, the application says nothing",
        "the same",
        "time since the first broker's word",
        median=1.3,
        worst=2.0,
    ),
    Scenario(
        "killed-idle",
        "The same without either, `topic.metadata.refresh.interval.ms` = 5 s",
        "at the next interval (+20 %)",
        "time since the first broker's word",
        worst=6.0,
    ),
    Scenario(
        "stopped-told",
        "A leader is stopped (SIGTERM); the old leader refuses, the application reports it",
        "the new leader within `retry.backoff.max.ms`",
        "time since the first broker's word",
        worst=1.0,
    ),
    Scenario(
        "stopped-broke",
        "The same; its connection ends, 0.7 s after its leaders have moved",
        "the new leader within `retry.backoff.max.ms` of the end",
        "time since the first broker's word",
        worst=1.7,
    ),
    Scenario(
        "stopped-alone",
        "Its partitions of replication factor 1",
        "no leader (error 5), the last one readable; back within 1.3 x `retry.backoff.max.ms`",
        "time from the first broker's word of its return",
        median=1.3,
        worst=2.0,
    ),
    Scenario(
        "rolled-told",
        "Three nodes are restarted one by one, replication factor 3, 1 000 lookups/s;"
        " the application reports what an old leader refuses",
        "no epoch goes back, no lookup finds its topic not cached",
        "longest time since a broker's first word",
    ),
    Scenario(
        "rolled-reader",
        "The same, the application only looks up, interval 5 s",
        "the same",
        "longest time since a broker's first word",
    ),
    Scenario(
        "frozen",
        "The node in use is frozen (SIGSTOP) while it holds a request, and thawed later",
        "a refresh within 1.5 x the wait for a hedge; the late answer does no harm",
        "time of refresh(), in waits for a hedge (1 s on a quiet machine)",
        unit="hedges",
        worst=1.5,
    ),
    Scenario(
        "topics",
        "A topic is created, widened, deleted and created again under 100 waiters",
        "each waiter sees every change once, in order; `topic_recreated`",
        "time from the first broker's word of the new topic to the last waiter's return",
        worst=1.3,
    ),
    Scenario(
        "bootstrap",
        "The bootstrap list is refused, unresolvable, a black hole, no Kafka; the last one is good;"
        " they are asked in that order",
        "the first answer within 1 s per silent server + 1 s; one warning per bad one",
        "time from the first call to the first answer",
        worst=2.0,
    ),
    Scenario(
        "cut-refused",
        "The network is cut for 5 s: connections are reset and refused",
        "lookups served; true soon after: within 2 x `retry.backoff.max.ms`"
        " + `reconnect.backoff.max.ms` (2 s here) + 4 waits for a hedge",
        "time since the network is back",
        worst=8.0,
    ),
    Scenario(
        "cut-silent",
        "The same; packets get lost, nothing is refused",
        "the same",
        "time since the network is back",
        worst=8.0,
    ),
    Scenario(
        "cut-long",
        "The network is cut for 60 s, `metadata.max.age.ms` = 20 s",
        "lookups served, stale past their age; true within that time + 10 s",
        "time since the network is back",
        worst=18.0,
    ),
    Scenario(
        "cut-frame",
        "A connection is cut inside an answer",
        "refresh() asks again within `retry.backoff.max.ms` + `reconnect.backoff.ms`",
        "time of refresh()",
        worst=1.5,
    ),
    Scenario(
        "moved",
        "All nodes come back on new addresses; the bootstrap name leads to one of them",
        "a rebootstrap: every connection closed, names resolved anew",
        "time since a broker tells the new addresses",
        worst=8.0,
    ),
    Scenario(
        "other-cluster",
        "Another cluster answers at the bootstrap name",
        "not accepted before a rebootstrap, then whole",
        "time from the end of the old brokers",
        worst=8.0,
    ),
    Scenario(
        "error-129",
        "A broker answers REBOOTSTRAP_REQUIRED (129)",
        "every connection closed, names resolved anew, the next answer from the bootstrap list",
        "time from that answer to the next one",
        worst=2.0,
    ),
    Scenario(
        "storm",
        "1 000 topics of replication factor 1, all needed, lose their leader at once for 36 s",
        "15 s of an election later: at most 8 + W / (0.8 x `retry.backoff.max.ms`) in any W s",
        "requests beyond that in the worst window (below 0: fewer)",
        unit="requests",
        worst=0.0,
    ),
    Scenario(
        "throttled",
        "A broker throttles the client for 2 s (`throttle_time_ms`)",
        "nothing is sent there meanwhile, others are asked",
        "requests to it meanwhile",
        unit="requests",
        worst=0.0,
    ),
    Scenario(
        "suspended",
        "The client's process is stopped for 60 s (SIGSTOP), interval 10 s",
        "what was due is asked once, nothing spins",
        "Metadata answers until 3 s after the first",
        unit="answers",
        worst=1.0,
    ),
    Scenario(
        "resolver",
        "The system's resolver hangs",
        "close() does not wait for it; nothing is left but its thread",
        "time of close()",
        worst=1.0,
    ),
    Scenario(
        "exit",
        "A process ends without close() while the resolver hangs",
        "its exit does not wait",
        "time from the program's end to the process's",
        worst=1.0,
    ),
    Scenario(
        "interrupt",
        "Ctrl-C during refresh() of a server that is silent, or whose name's resolver hangs",
        "KeyboardInterrupt, and the process ends",
        "time from the signal to the process's end",
        worst=1.0,
    ),
    Scenario(
        "gunicorn",
        "gunicorn forks two workers of a process with a running client",
        "workers read the cache, every other call raises ForkedError; the parent's client goes on",
        "time of the workers' answers and of the end",
    ),
    Scenario(
        "celery",
        "Celery forks two workers of a process with a running client",
        "the same",
        "time of the workers' answers and of the end",
    ),
    Scenario(
        "let-in",
        "Each mechanism, and a client certificate whose key has a password; all secrets are right",
        "one attempt per address, no log line; the broker sees the right principal: it alone may"
        " describe its topic; `fetch(conf=)` is let in, too",
        "time from the first call to the first answer",
        worst=2.0,
    ),
    Scenario(
        "refused",
        "Wrong password, mechanism, CA or host name; expired certificate; no client certificate",
        "an error in one attempt with cause, server and option; no second log line in 30 s",
        "time to the error; 62 clients, `reconnect.backoff.ms` 4 s, refusals 0.5 s late",
        worst=4.0,
    ),
    Scenario(
        "wrong-port",
        "TLS to plaintext or back, no SASL, needless SASL, HTTP, SSH, ZooKeeper, a controller",
        "the same, with what the port seems to be",
        "time to the error; the same 62 clients",
        worst=4.0,
    ),
    Scenario(
        "no-token",
        "OAUTHBEARER: the token endpoint is down, wrong, refuses; the broker refuses the token",
        "the same",
        "time to the error; the same 62 clients",
        worst=4.0,
    ),
    Scenario(
        "no-server",
        "Nothing listens on the port; no such host name",
        "the call waits until its time-out of 3 s; its error has cause and server; no second log"
        " line in 30 s",
        "time to the error; the same 62 clients",
        worst=4.0,
    ),
    Scenario(
        "denied-others",
        "Describe is denied for one topic; a client waits for a new partition of another one",
        "the denial is raised once to each wait; others go on without a problem",
        "time of the wait for the new partition",
        worst=2.0,
    ),
    Scenario(
        "denied-forced",
        "The denied topic is granted; `refresh(force=True)`",
        "back at once",
        "time of refresh()",
        worst=1.0,
    ),
    Scenario(
        "denied-alone",
        "The same; the application does nothing",
        "back after the TTL of a denial, 10 s, and not before",
        "time since the denial",
        worst=12.0,
        least=8.0,
    ),
    Scenario(
        "sessions",
        "`connections.max.reauth.ms` = 5 s, for 60 s",
        "10 logins or more on one connection after its first",
        "logins of one connection in 60 s (worst: fewest)",
        unit="logins",
        least=10.0,
    ),
    Scenario(
        "sessions-kept", "The same", "no disconnect", "disconnects", unit="disconnects", worst=0.0
    ),
    Scenario(
        "sessions-blocked",
        "The same; the client's loop is blocked for 6 s, beyond the end of a session",
        "the login comes before the next request: no disconnect",
        "disconnects",
        unit="disconnects",
        worst=0.0,
    ),
    Scenario(
        "password-changed",
        "The same; then the password is changed, and the client has the old one",
        "one clear error, at the end of the session at the latest",
        "time from the change to the error; brokers delay a refusal by 0.5 s",
        worst=5.5,
    ),
    Scenario(
        "password-line",
        "The same",
        "one log line, with server, cause and `sasl.password`, for this and all later refusals",
        "lines from warnings on, in 20 s",
        unit="lines",
        worst=1.0,
        least=1.0,
    ),
    Scenario(
        "password-followed",
        "The same; `sasl.password` is a callable that returns the new one",
        "no disconnect",
        "logins with the new password in 20 s (worst: fewest)",
        unit="logins",
        least=3.0,
    ),
    Scenario(
        "certificate-ended",
        "The broker's certificate expires while clients are connected",
        "no disconnect by the client; a new connection is refused, with the cause",
        "disconnects",
        unit="disconnects",
        worst=0.0,
    ),
    Scenario(
        "ca-replaced",
        "The CA is replaced, both in `ssl.ca.location` for a while; connections break",
        "the next connection uses what is on disk",
        "time from the break to the next answer",
        worst=3.0,
    ),
    Scenario(
        "certificate-replaced",
        "The client's own certificate is replaced on disk, and expires; connections break",
        "no disconnect by the client; the next connection uses what is on disk",
        "time from the break to the next answer",
        worst=3.0,
    ),
    Scenario(
        "oidc",
        "OIDC client credentials: tokens of a local server, whose key the brokers know",
        "connects; logs in again with the same token while the server is down",
        "time to the first answer",
        worst=3.0,
    ),
    Scenario(
        "token-slow",
        "The server of the tokens does not answer within 10 s",
        "cause in one attempt; connections of others live on",
        "time from the first call to the error",
        worst=12.0,
    ),
    Scenario(
        "token-asked",
        "The server of the tokens answers 503 for 10 s, `reconnect.backoff.max.ms` = 2 s",
        "asked again with backoff; connections of others live on",
        "requests of a client in 10 s",
        unit="requests",
        worst=10.0,
    ),
    Scenario(
        "token-back",
        "The server of the tokens is down, and comes back, `reconnect.backoff.max.ms` = 2 s",
        "tried again with backoff, then connected; connections of others live on",
        "time from its return to the next answer",
        worst=4.0,
    ),
    Scenario(
        "login-storm",
        "100 clients of each kind with a wrong password; the broker delays refusals by 0.5 s",
        "no storm: a client's next login comes `reconnect.backoff.max.ms` (10 s +-20 %) later",
        "most logins of one client in 15 s",
        unit="logins",
        worst=2.0,
    ),
    Scenario(
        "one-refuses",
        "A password that is wrong on one of three brokers, which each client asks first",
        "the others are used; that one is asked again after 10 s +-20 % at the earliest",
        "logins that it refused in 15 s",
        unit="logins",
        worst=2.0,
    ),
)
KNOWN = {scenario.key: scenario for scenario in SCENARIOS}


def load(path: Path) -> list[Row]:
    """Returns the rows of a file, or none without a file."""
    rows: list[Row] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return rows


def place(row: Row) -> tuple[str, str, str]:
    """Returns the key of a row: the scenario, the brokers, the client."""
    return row["scenario"], row["brokers"], row["client"]


def merge(old: Iterable[Row], new: Iterable[Row]) -> list[Row]:
    """Returns the old rows with the new ones in their place, in the order of SCENARIOS."""
    rows = {place(row): row for row in [*old, *new] if row["scenario"] in KNOWN}
    order = list(KNOWN)
    return sorted(
        rows.values(), key=lambda r: (order.index(r["scenario"]), r["brokers"], r["client"])
    )


def write(path: Path, new: Iterable[Row]) -> None:
    """Merges rows into the file; a row takes one line."""
    rows = merge(load(path), new)
    path.parent.mkdir(exist_ok=True, parents=True)
    lines = ",\n".join(json.dumps(row, sort_keys=True) for row in rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


# ---- the page -----------------------------------------------------------------------------------

HEAD = """\
# Scenarios

<!-- `make scenarios` writes this page from tests/real/scenarios.json: do not edit it. -->

What do the clients do when brokers fail? `make scenarios` runs each scenario five times on Apache
Kafka, or on the tests' own brokers if Kafka does not do such a thing on demand. Both clients see
the same fault. Many times count from *the first broker's word*: the moment at which any broker
first says what is new. A separate process notes it; it asks each broker every 10 ms.

Unless a row says otherwise, the clients have their default configuration, in which
`retry.backoff.max.ms` is 1 s. Times depend on the machine. A value beyond its bound is **bold**;
the tests allow the worst value one second more, since a machine may be busy. In rows with SASL_SSL
the clients use TLS and log in by SCRAM-SHA-512, unless the row names another mechanism. The tests
search all of their output for secrets. [errors.md](../reference/errors.md) has the texts of errors.

"""


def number(value: float, unit: str) -> str:
    """Returns a value as the page shows it."""
    if unit == "hedges":
        return f"{value:.2f}"
    if unit != "s":
        return str(round(value))
    if value < 0.1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def cell(row: Row | None, scenario: Scenario, what: str) -> str:
    """Returns the median or the worst value of a row; bold beyond its bound."""
    if row is None:
        return "-"
    values = row["values"]
    if what == "median":
        value = statistics.median(values)
        is_good = scenario.median is None or value <= scenario.median
    else:
        value = scenario.worst_of(values)
        is_good = all(map(scenario.allows, values))
    text = number(value, scenario.unit)
    return text if is_good else f"**{text}**"


def signature(rows: Sequence[Row]) -> list[str]:
    """Returns a line for each run: its machine, commit and day."""
    runs: dict[tuple[str, str, str], int] = {}
    for row in rows:
        commit, changed, _ = row["commit"].partition("-dirty")
        commit = f"`{commit}`" + (" and uncommitted changes" if changed else "")
        run = (row["machine"], commit, row["measured_at"][:10])
        runs[run] = runs.get(run, 0) + 1
    return [
        f"- {count} rows: {machine}; commit {commit}, {day}"
        for (machine, commit, day), count in sorted(runs.items(), key=lambda item: item[0][2])
    ]


def page(rows: Sequence[Row]) -> str:
    """Returns docs/internals/scenarios.md."""
    found = {place(row): row for row in rows}
    out = ["| scenario | expected | seen | brokers | Client: median, worst | AsyncClient |"]
    out += ["|---|---|---|---|---|---|"]
    for scenario in SCENARIOS:
        texts = [scenario.scenario, scenario.expected, scenario.seen]
        for brokers in sorted({r["brokers"] for r in rows if r["scenario"] == scenario.key}):
            cells = []
            for client in CLIENTS:
                row = found.get((scenario.key, brokers, client))
                cells.append(", ".join(cell(row, scenario, w) for w in ("median", "worst")))
            out.append(f"| {' | '.join([*texts, brokers, *cells])} |")
            texts = ["", "", ""]  # the next line is about the same
    least = min((len(row["values"]) for row in rows), default=0)
    end = ["", f"Each row is of {least} rounds or more.", "", *signature(rows)]
    return HEAD + "\n".join([*out, *end]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(load(RESULTS)), encoding="utf-8")
