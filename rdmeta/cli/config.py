"""`rdmeta config`: the options, what is set and from where; --check tries every server."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from rdmeta.cli.messages import FINE, NO_ANSWER, UNMET, Messages
from rdmeta.cli.output import Output, Row, TableColumn, clusters_table, columns, label, members
from rdmeta.cli.shared_options import (
    OptionSource,
    Target,
    Where,
    connection_options,
    merged,
    output_options,
    side_by_side,
    variable_of,
)
from rdmeta.errors import ConfigError

if TYPE_CHECKING:
    from rdmeta.config.option_table import Option
    from rdmeta.net.check import CheckedServer

_METADATA = 3
# How many servers with one cause a line names.
_NAMED = 3
_OPTIONS = columns("option value default from")
_STEPS = {
    "name": "name_ms",
    "tcp": "tcp_ms",
    "tls": "tls_ms",
    "versions": "versions_ms",
    "sasl": "sasl_ms",
    "metadata": "round_trip_ms",
}
_SERVERS = (
    *columns("server broker:integer bootstrap:flag result"),
    *(TableColumn(name, "number") for name in _STEPS.values()),
    *columns("metadata_versions tls expires:time days:integer cluster_id error"),
)


@click.command(
    epilog="""\b
Examples:
  rdmeta config -X client.id=me
  rdmeta config --check
"""
)
@click.option(
    "--check",
    is_flag=True,
    help="Try each bootstrap server and each broker that they list; --timeout counts for each.",
)
@connection_options
@output_options
def command(where: Where, output: Output, check: bool) -> int:
    """Show each option of the client: its value, its default, and where it is set.

    A secret is shown as ***, and so is the value of an unknown option.

    With --check there is one row per server: the milliseconds that its name, TCP, TLS, versions
    (ApiVersions), SASL and one request took. The row also has the days until the certificates
    expire, the cluster's id, and the first step that fails, with the cause. The exit code is 1 if a
    server fails or the servers are of several clusters, 3 if every server fails.
    """
    where.messages.log()
    return _check(where, output) if check else _show(where, output)


# ---- options ------------------------------------------------------------------------------------


def _show(where: Where, output: Output) -> int:
    """Prints the options, and then what is wrong with them; returns the exit code."""
    from rdmeta.config import parse

    clusters = where.sources()
    found = [(name, list(_rows(sources))) for name, sources in clusters]
    objects = [{**label(name), **members(_OPTIONS, row)} for name, rows in found for row in rows]
    head = {"version": 1, "command": "config"}
    output.answer({**head, "options": objects}, clusters_table(_OPTIONS, found))
    code = FINE
    for name, sources in clusters:
        try:
            parse(merged([each.options for each in sources]), servers=False)
        except ConfigError as error:
            code = max(code, where.messages.failure(error, name))
    return code


def _rows(sources: Sequence[OptionSource]) -> Iterator[Row]:
    """Yields the options in their order, then other keys that are set."""
    from rdmeta.config import masked
    from rdmeta.config.option_table import OPTIONS

    conf = merged([each.options for each in sources])
    texts = masked(conf)
    for option in OPTIONS:
        if option.kind == "callable":  # no text is one
            continue
        given = option.alias if option.alias in conf and option.key not in conf else option.key
        conf.pop(given, None)
        yield option.key, texts.get(given), _default(option), _origin(given, sources)
    for key in conf:
        yield key, texts[key], None, _origin(key, sources)


def _default(option: Option) -> str | None:
    """Returns the default as text, in words where other options decide it; None without one."""
    if option.default_doc:
        return option.default_doc.replace("`", "")
    if isinstance(option.default, bool):
        return str(option.default).lower()
    return str(option.default) if option.default not in ("", ()) else None


def _origin(key: str, sources: Sequence[OptionSource]) -> str | None:
    """Returns the last source that sets an option; for the environment it is the variable."""
    for source in reversed(sources):
        if key not in source.options:
            continue
        if source.name != "environment":
            return source.name
        is_short = key == "bootstrap.servers" and os.environ.get("RDMETA_BOOTSTRAP")
        return "RDMETA_BOOTSTRAP" if is_short else variable_of(key)
    return None


# ---- servers ------------------------------------------------------------------------------------


class _Checked(NamedTuple):
    """The servers of a cluster; `error` says why none was tried."""

    name: str | None
    servers: Sequence[CheckedServer]
    error: Exception | None = None


def _check(where: Where, output: Output) -> int:
    """Tries the servers of each cluster and prints them; returns the exit code."""
    from rdmeta.net.check import check

    def work(target: Target) -> tuple[CheckedServer, ...]:
        return check(target.conf, where.timeout)

    found, code = [], FINE
    for target, outcome in side_by_side(where.targets(), work):
        if isinstance(outcome, Exception):
            code = max(code, where.messages.failure(outcome, target.name))
            found.append(_Checked(target.name, (), outcome))
        else:
            found.append(_Checked(target.name, outcome))
    has_names = where.clusters is not None
    if any(each.servers for each in found) or (output.form == "json" and has_names):
        rows = [(each.name, map(_server_row, each.servers)) for each in found]
        output.answer(_check_object(found), clusters_table(_SERVERS, rows))
    return max([code, *(_judge(each, where.messages) for each in found)])


def _judge(checked: _Checked, messages: Messages) -> int:
    """Says what is wrong with the servers; returns the exit code for that."""
    failed, total = [each for each in checked.servers if each.failed], len(checked.servers)
    if not failed:
        return FINE
    every = len(failed) == total
    count = "no server can be used" if every else f"{len(failed)} of {total} fail"
    messages.fault(f"{count}: {_causes(failed)}", checked.name)
    return NO_ANSWER if every else UNMET


def _causes(failed: Sequence[CheckedServer]) -> str:
    """Returns each cause once, after the servers that have it."""
    by_cause: dict[str, list[str]] = {}
    for each in failed:
        by_cause.setdefault(f"at {each.failed}: {_cause(each)}", []).append(each.server)
    return "; ".join(f"{_few(servers)} {cause}" for cause, servers in by_cause.items())


def _few(servers: Sequence[str]) -> str:
    more = f" and {len(servers) - _NAMED} more" if len(servers) > _NAMED else ""
    return ", ".join(servers[:_NAMED]) + more


def _cause(server: CheckedServer) -> str | None:
    """Returns the error of a server, with the key to check where the error does not name one."""
    if server.error is None:
        return None
    text = str(server.error)
    if server.failed not in ("name", "tcp"):
        return text
    if server.is_bootstrap:
        return f"{text}; check bootstrap.servers"
    return f"{text}; check advertised.listeners of broker {server.broker}"


def _server_row(server: CheckedServer) -> Row:
    lowest_highest = server.versions.get(_METADATA)
    return (
        server.server,
        server.broker,
        server.is_bootstrap,
        server.failed or "ok",
        *map(_milliseconds, (server.seconds.get(each) for each in _STEPS)),
        None if lowest_highest is None else "{}-{}".format(*lowest_highest),
        server.tls,
        server.expires,
        _days(server.expires),
        server.cluster_id,
        _cause(server),
    )


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)


def _days(expires: datetime | None) -> int | None:
    """Returns the whole days that are left; they are negative for what has expired."""
    return None if expires is None else (expires - datetime.now(timezone.utc)).days


def _check_object(found: Iterable[_Checked]) -> dict[str, Any]:
    clusters, servers = [], []
    for checked in found:
        head = label(checked.name)
        error = None if checked.error is None else str(checked.error)
        clusters.append({**head, "error": error})
        for each in checked.servers:
            servers.append({**head, **members(_SERVERS, _server_row(each))})
    return {"version": 1, "command": "config", "clusters": clusters, "servers": servers}
