"""The options that commands share: which cluster, with what settings, and how to print."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple

import click

from rdmeta.cli.clusters import Target, clusters_file, named_clusters
from rdmeta.cli.messages import BadInputError, Messages
from rdmeta.cli.output import Output

__all__ = [
    "OptionSource",
    "Where",
    "connection_options",
    "csv_options",
    "every_option",
    "merged",
    "new_file",
    "output_options",
    "seconds",
    "variable_of",
]

_Function = Callable[..., Any]

_SERVERS = "bootstrap.servers"
_ALSO_SERVERS = "metadata.broker.list"
_PROTOCOL = "security.protocol"
_CREATE = "allow.auto.create.topics"
_PREFIX = "RDMETA_"
# The range of the client's refresh interval.
_SHORTEST_S, _LONGEST_S = 0.001, 3600.0


class OptionSource(NamedTuple):
    """Options, and where the user gave them: the environment, a file, -b or -X."""

    name: str
    options: Mapping[str, str]


class Where(NamedTuple):
    """The user's words about the clusters to ask; `timeout` is in seconds."""

    bootstrap: str | None
    file: str | None
    settings: tuple[tuple[str, str], ...]
    clusters: str | None
    timeout: float
    messages: Messages

    def targets(self) -> list[Target]:
        """Returns the clusters to ask, each with its options; later sources win.

        The sources are the environment, the clusters file, -F, -b and -X. Raises BadInputError and
        ConfigError. The options are not checked here. allow.auto.create.topics is left out: a file
        of -F may have it for a producer, but the command creates no topic.
        """
        clusters = self.sources()
        found = [Target(name, merged([each.options for each in given])) for name, given in clusters]
        for target in found:
            target.conf.pop(_CREATE, None)
        if self.clusters is None and not _has_servers(found[0].conf):
            raise BadInputError(
                "no cluster is named: give -b HOST:PORT, or -c NAME, or set RDMETA_BOOTSTRAP"
            )
        return found

    def sources(self) -> list[tuple[str | None, list[OptionSource]]]:
        """Returns each cluster's name, None without -c, and its options by source.

        A later source wins. There may be no servers among them. Secrets in the environment do not
        count for a named cluster without security.protocol: one of several may be plaintext. Raises
        as targets().
        """
        first = OptionSource("environment", _environment(os.environ))
        last = [] if self.file is None else [OptionSource(self.file, _properties(self.file))]
        if self.bootstrap is not None:
            last.append(OptionSource("-b", {_SERVERS: self.bootstrap}))
        last.append(OptionSource("-X", dict(self.settings)))
        if self.clusters is None:
            return [(None, [first, *last])]
        for source in filter(lambda each: _has_servers(each.options), last):
            what = source.name if source.name == "-b" else f"{_SERVERS} of {source.name}"
            raise BadInputError(f"{what} and -c both say which cluster to ask: leave out one")
        first = OptionSource(first.name, _without_servers(first.options))
        file = clusters_file()
        found: list[tuple[str | None, list[OptionSource]]] = []
        for name, own in named_clusters(self.clusters, self.messages):
            given = [first, OptionSource(f"{file} [{name}]", own), *last]
            if not any(_PROTOCOL in source.options for source in given):
                given[0] = OptionSource(first.name, _without_security(first.options))
            found.append((name, given))
        return found

    def target(self) -> Target:
        """Returns the one cluster to ask, for a command that takes no more; as targets()."""
        found = self.targets()
        if len(found) > 1:
            raise BadInputError("this command asks one cluster: -c takes one name here")
        return found[0]


def _has_servers(conf: Mapping[str, str]) -> bool:
    return _SERVERS in conf or _ALSO_SERVERS in conf


def _without_servers(conf: Mapping[str, str]) -> dict[str, str]:
    return {key: conf[key] for key in conf if key not in (_SERVERS, _ALSO_SERVERS)}


def _without_security(conf: Mapping[str, str]) -> dict[str, str]:
    return {key: conf[key] for key in conf if not key.startswith(("sasl.", "ssl."))}


def _properties(path: str) -> dict[str, str]:
    from rdmeta.config.properties import read_properties

    return read_properties(path)


def _environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the options that the environment sets: RDMETA_SASL_PASSWORD is sasl.password."""
    given = {name: value for name, value in variables.items() if name.startswith(_PREFIX)}
    found = {}
    servers = given.pop(f"{_PREFIX}BOOTSTRAP", "")
    given.pop(f"{_PREFIX}CLUSTERS", None)
    if given:
        from rdmeta.config.option_table import JAVA_KEYS, OPTIONS

        keys = [key for each in OPTIONS for key in (each.key, each.alias) if key] + list(JAVA_KEYS)
        for key in keys:
            if (name := variable_of(key)) in given:
                found[key] = given[name]
    return {**found, _SERVERS: servers} if servers else found


def variable_of(key: str) -> str:
    """Returns the environment variable that sets an option; RDMETA_BOOTSTRAP sets the servers."""
    return _PREFIX + key.upper().replace(".", "_").replace("-", "_")


def merged(sources: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Returns all options; a later source also wins under an option's other name."""
    given = [source for source in sources if source]
    if len(given) < 2:  # then the table of options is not needed
        return dict(*given)
    from rdmeta.config.option_table import OPTIONS

    first = {each.alias: each.key for each in OPTIONS if each.alias}
    names: dict[str, str] = {}
    merged: dict[str, str] = {}
    for source in given:
        for key in source:
            earlier = names.pop(first.get(key, key), None)
            if earlier is not None and earlier not in source:
                merged.pop(earlier, None)
        for key, value in source.items():
            names[first.get(key, key)] = key
            merged[key] = value
    return merged


def _pair(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> Any:
    """Splits the values of -X; an error shows no value, which may be a secret."""
    pairs = []
    for each in values:
        key, equals, value = each.partition("=")
        if not equals or not key.strip():
            raise click.UsageError("-X needs key=value, such as -X security.protocol=ssl", context)
        pairs.append((key.strip(), value.strip()))
    return tuple(pairs)


def seconds(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Checks the value of an option in seconds, as click's callback; None passes."""
    if value is not None and not 0 < value < 1e9:  # a NaN is refused, too
        text = f"{option.opts[-1]} needs a number of seconds above 0 and below 1e9"
        raise click.UsageError(text, context)
    return value


def new_file(given: str) -> str:
    """Returns the path of a file that a command will write.

    The new file takes the place of an earlier one, but not that of a device, a pipe or a symbolic
    link, such as /dev/stdout: it is written where the link leads. Raises BadInputError for a device
    or a pipe, and IsADirectoryError.
    """
    path = os.path.realpath(given) if os.path.islink(given) else given
    try:
        mode = os.stat(given).st_mode  # not of `path`: /dev/stdout leads to no name if it is a pipe
    except OSError:  # it is not there, or the attempt to write says why it cannot be
        return path
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), given)
    if not stat.S_ISREG(mode):
        raise BadInputError(f"{given}: it is not a regular file, and a new file would replace it")
    return path


def _new_file(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    return None if value is None else new_file(value)


def every_option(help: str) -> Callable[[_Function], _Function]:
    """Returns a decorator that adds --every: the client's refresh interval, 10 s by default."""
    return click.option(
        "--every",
        type=float,
        default=10.0,
        show_default=True,
        metavar="SECONDS",
        callback=_interval,
        help=help,
    )


def _interval(context: click.Context, option: click.Parameter, value: float) -> float:
    if not _SHORTEST_S <= value <= _LONGEST_S:
        text = f"--every needs {_SHORTEST_S:g} to {_LONGEST_S:g} seconds"
        raise click.UsageError(text, context)
    return value


def connection_options(function: _Function) -> _Function:
    """Adds the options that name clusters; the function gets a Where as `where`."""
    options = [
        click.option(
            "-b",
            "--bootstrap",
            "--bootstrap-server",
            "bootstrap",
            metavar="HOST[:PORT],...",
            help="Servers to ask first; else RDMETA_BOOTSTRAP, or bootstrap.servers of -F or -X.",
        ),
        click.option(
            "-F",
            "--config",
            "config_file",
            metavar="FILE",
            help="A properties file with options of the client.",
        ),
        click.option(
            "-X",
            "settings",
            metavar="KEY=VALUE",
            multiple=True,
            callback=_pair,
            help="An option of the client; it wins over -F. Arguments show in ps: give a secret in"
            " the file of -F, or as RDMETA_SASL_PASSWORD for sasl.password and so on.",
        ),
        click.option(
            "-c",
            "--cluster",
            "clusters",
            metavar="NAME[,NAME]|all",
            help="Clusters of the file that RDMETA_CLUSTERS names, else"
            " ~/.config/rdmeta/clusters.ini.",
        ),
        click.option(
            "--timeout",
            type=float,
            default=10.0,
            show_default=True,
            metavar="SECONDS",
            callback=seconds,
            help="How long to wait for a cluster.",
        ),
        click.option("-v", "verbose", count=True, help="Say more; -vv: the client's whole log."),
        click.option("-q", "quiet", is_flag=True, help="Print errors only, and no warnings."),
    ]

    @wraps(function)
    def with_where(
        *args: Any,
        bootstrap: str | None,
        config_file: str | None,
        settings: tuple[tuple[str, str], ...],
        clusters: str | None,
        timeout: float,
        verbose: int,
        quiet: bool,
        **others: Any,
    ) -> Any:
        messages = click.get_current_context().obj
        messages.level = -1 if quiet else min(verbose, 2)
        where = Where(bootstrap, config_file, settings, clusters, timeout, messages)
        return function(*args, where=where, **others)

    return _with(options, with_where)


_CSV = (
    click.option(
        "--csv",
        "csv",
        is_flag=True,
        help="Print CSV, with a header line; no text in it is a formula.",
    ),
    click.option("--csv-raw", "csv_raw", is_flag=True, help="Print CSV with each text as it is."),
)


def csv_options(function: _Function) -> _Function:
    """Adds --csv and --csv-raw."""
    return _with(_CSV, function)


def output_options(function: _Function) -> _Function:
    """Adds the options of the form of the output; the function gets an Output as `output`."""
    options = [
        click.option("--json", "json", is_flag=True, help="Print JSON."),
        *_CSV,
        click.option(
            "--parquet",
            metavar="FILE",
            callback=_new_file,
            help="Write a Parquet file; needs rdmeta[arrow].",
        ),
        click.option(
            "--no-color", "plain", is_flag=True, help="No colors; NO_COLOR does the same."
        ),
    ]

    @wraps(function)
    def with_output(
        *args: Any,
        json: bool,
        csv: bool,
        csv_raw: bool,
        parquet: str | None,
        plain: bool,
        **others: Any,
    ) -> Any:
        forms = [("json", json), ("csv", csv), ("csv-raw", csv_raw)]
        forms.append(("parquet", parquet is not None))
        given = [name for name, is_given in forms if is_given]
        if len(given) > 1:
            both = " and ".join(f"--{name}" for name in given)
            raise click.UsageError(f"{both} exclude each other", click.get_current_context())
        output = Output(given[0] if given else "text", parquet, color=not plain)
        return function(*args, output=output, **others)

    return _with(options, with_output)


def _with(options: Sequence[Callable[[_Function], _Function]], function: _Function) -> _Function:
    for option in reversed(options):
        function = option(function)
    return function
