"""The options that commands share: which clusters, with what settings, how to print, and --metrics.

The clusters of -c are read from their file here, and asked side by side. Metrics are served over
HTTP for as long as a command runs.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import click

from rdmeta.cli.messages import FINE, BadInputError, Messages, nearest
from rdmeta.cli.output import Output
from rdmeta.errors import Error, MissingExtraError

if TYPE_CHECKING:
    from rdmeta.client.blocking import Client
    from rdmeta.metrics.samples import MinIsrOfTopics

_T = TypeVar("_T")

_AT_ONCE = 16
_LARGEST = 1 << 20


class Target(NamedTuple):
    """A cluster to ask: its name in the clusters file, None without -c; the client's options."""

    name: str | None
    conf: dict[str, str]

    def arguments(self) -> dict[str, Any]:
        """Returns the cluster as keyword arguments of fetch(): bare servers need no checks."""
        if list(self.conf) == ["bootstrap.servers"]:
            return {"bootstrap": self.conf["bootstrap.servers"]}
        return {"conf": self.conf}


def clusters_file() -> Path:
    """Returns the path of the clusters file; it need not exist."""
    given = os.environ.get("RDMETA_CLUSTERS")
    return Path(given) if given else Path.home() / ".config" / "rdmeta" / "clusters.ini"


def named_clusters(names: str, messages: Messages) -> list[tuple[str, dict[str, str]]]:
    """Returns the sections of the clusters file that `names` lists: NAME[,NAME...] or all.

    Each is a name with its options; a name that is listed twice counts once. Raises BadInputError,
    whose text shows no value of the file.
    """
    path = clusters_file()
    sections = _sections(path)
    wanted = list(dict.fromkeys(name.strip() for name in names.split(",")))
    if wanted == ["all"]:
        wanted = list(sections)
    if not wanted:
        raise BadInputError(f"{path}: there is no cluster in it: add a section such as [prod]")
    for name in wanted:
        if name not in sections:
            raise BadInputError(f"{path}: there is no cluster {name!r}{_advice(name, sections)}")
    found = [(name, sections[name]) for name in wanted]
    _warn_of_secrets(path, found, messages)
    return found


def _advice(name: str, sections: dict[str, dict[str, str]]) -> str:
    near = nearest(name, sections)
    return f"; did you mean {near}?" if near else f"; it has {', '.join(sections) or 'none'}"


def _sections(path: Path) -> dict[str, dict[str, str]]:
    """Returns the options of each section; lines of the file never reach an error."""
    import configparser

    parser = configparser.RawConfigParser(
        delimiters=("=",), inline_comment_prefixes=None, default_section="", interpolation=None
    )
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise BadInputError(f"{path}: a file of clusters has at most {_LARGEST} characters")
        parser.read_string(text)
        return {name: dict(parser.items(name)) for name in parser.sections()}
    except FileNotFoundError:
        fault = (
            "there is no such file: make it, with a section such as [prod] for each cluster, or"
            " name another one in RDMETA_CLUSTERS"
        )
    except UnicodeDecodeError:
        fault = "it is not UTF-8"
    except configparser.DuplicateSectionError as error:
        fault = f"line {error.lineno}: there are two sections [{error.section}]"
    except configparser.DuplicateOptionError as error:
        fault = f"line {error.lineno}: [{error.section}] has {error.option} twice"
    except configparser.MissingSectionHeaderError as error:
        fault = f"line {error.lineno}: a section such as [prod] must come first"
    except configparser.ParsingError as error:
        fault = f"line {error.errors[0][0]}: expected key = value"
    raise BadInputError(f"{path}: {fault}")


def _warn_of_secrets(
    path: Path, clusters: Sequence[tuple[str, dict[str, str]]], messages: Messages
) -> None:
    """Warns if other users can read secrets in the file."""
    from rdmeta.config.option_table import OPTIONS

    if not stat.S_IMODE(path.stat().st_mode) & (stat.S_IRGRP | stat.S_IROTH):
        return
    secret = {each.key for each in OPTIONS if each.kind in ("secret", "private key")}
    secret.add("sasl.jaas.config")
    if any(secret & set(conf) for _, conf in clusters):
        messages.note(f"{path} has secrets, and other users can read it: chmod 600 {path}")


def side_by_side(
    targets: Sequence[Target], work: Callable[[Target], _T]
) -> Iterator[tuple[Target, _T | Exception]]:
    """Yields each target with the result of `work` or the exception that it raised, in their order.

    Each cluster has a thread, at most 16 at once; a lone cluster is asked in this thread. The
    threads do not hold up the exit of the process, so that Ctrl-C ends it at once.
    """
    if len(targets) == 1:
        yield targets[0], _outcome(work, targets[0])
        return
    outcomes: dict[int, _T | Exception] = {}
    done = [threading.Event() for _ in targets]
    numbers = SimpleQueue[int]()
    for number in range(len(targets)):
        numbers.put(number)

    def turns() -> None:
        with suppress(Empty):
            while True:
                number = numbers.get_nowait()
                outcomes[number] = _outcome(work, targets[number])
                done[number].set()

    for _ in range(min(_AT_ONCE, len(targets))):
        threading.Thread(target=turns, name="rdmeta-cluster", daemon=True).start()
    for number, target in enumerate(targets):
        done[number].wait()
        yield target, outcomes[number]


def made_of(
    targets: Sequence[Target], make: Callable[[Target], _T], messages: Messages
) -> tuple[dict[str | None, _T], int]:
    """Returns by name what is made of each target, and the exit code of those that fail."""
    made: dict[str | None, _T] = {}
    code = FINE
    for target in targets:
        try:
            made[target.name] = make(target)
        except Error as error:
            code = max(code, messages.failure(error, target.name))
    return made, code


def _outcome(work: Callable[[Target], _T], target: Target) -> _T | Exception:
    try:
        return work(target)
    except Exception as error:
        return error


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
    found: dict[str, str] = {}
    servers = given.pop(f"{_PREFIX}BOOTSTRAP", "")
    given.pop(f"{_PREFIX}CLUSTERS", None)
    if given:
        known = option_variables()
        found = {key: given[name] for name, key in known.items() if name in given}
    return {**found, _SERVERS: servers} if servers else found


def option_variables() -> dict[str, str]:
    """Returns the options by the environment variables that set them."""
    from rdmeta.config.option_table import JAVA_KEYS, OPTIONS

    keys = [key for each in OPTIONS for key in (each.key, each.alias) if key]
    return {variable_of(key): key for key in (*keys, *JAVA_KEYS)}


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


def pair(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> Any:
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


def seconds_option(*names: str, help: str, **more: Any) -> Callable[[_Function], _Function]:
    """Returns a decorator that adds an option in seconds; a default is shown."""
    more = {"show_default": "default" in more, **more}
    return click.option(*names, type=float, metavar="SECONDS", callback=seconds, help=help, **more)


topics_option = click.option(
    "-t",
    "--topic",
    "topics",
    metavar="NAME|/REGEX/",
    multiple=True,
    help="Only this topic, or those that match the regular expression. May be repeated.",
)
plain_option = click.option(
    "--no-color", "plain", is_flag=True, help="No colors; NO_COLOR does the same."
)
for_option = seconds_option(
    "--for",
    "duration",
    help="End after that time; otherwise Ctrl-C or SIGTERM ends the command.",
)


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
    options: list[Callable[[_Function], _Function]] = [
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
            callback=pair,
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
        seconds_option("--timeout", default=10.0, help="How long to wait for a cluster."),
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
    options: list[Callable[[_Function], _Function]] = [
        click.option("--json", "json", is_flag=True, help="Print JSON."),
        *_CSV,
        click.option(
            "--parquet",
            metavar="FILE",
            callback=_new_file,
            help="Write a Parquet file; needs rdmeta[arrow].",
        ),
        plain_option,
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


# Adds clients to those whose metrics are served.
Serve: TypeAlias = "Callable[..., None]"


_PAGES = ("/", "/metrics")


class Listen(NamedTuple):
    """Where to serve: `given` is the user's text of it."""

    given: str
    host: str
    port: int


def metrics_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --metrics; the function gets a Listen, or None, as `metrics`."""
    return click.option(
        "--metrics",
        metavar="[HOST:]PORT",
        callback=_listen,
        help="Serve metrics for Prometheus on this port, of HOST or of all addresses; needs"
        " rdmeta[metrics].",
    )(function)


def _listen(context: click.Context, option: click.Parameter, value: str | None) -> Listen | None:
    if value is None:
        return None
    host, colon, port = value.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        port = ""  # an IPv6 address without brackets: where it ends is not clear
    is_port = port.isascii() and port.isdigit() and len(port) < 6 and 1 <= int(port) <= 65535
    if not is_port or (colon and not host):
        text = "--metrics needs PORT or HOST:PORT, such as 9308, 127.0.0.1:9308 or [::1]:9308"
        raise click.UsageError(text, context)
    return Listen(value, host or "0.0.0.0", int(port))


@contextmanager
def serving(listen: Listen | None) -> Iterator[Serve]:
    """Serves metrics during the block, if there is a place; yields what takes the clients.

    Raises BadInputError if the port cannot be taken, MissingExtraError.
    """
    if listen is None:
        yield _nothing
        return
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as error:
        raise MissingExtraError.of("--metrics", "metrics") from error
    from rdmeta.metrics import collector

    registry = CollectorRegistry()
    try:
        server, _ = start_http_server(listen.port, listen.host, registry)
    except (OSError, UnicodeError) as error:  # a name with an empty label has no form in IDNA
        reason = error.strerror if isinstance(error, OSError) else "no name of a host"
        raise BadInputError(f"--metrics {listen.given}: {reason}") from error
    metrics: Any = server.get_app()

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        """Answers 404 for all but the metrics: prometheus-client has them at each path."""
        if environ["PATH_INFO"] in _PAGES:
            return metrics(environ, start_response)
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"The metrics are at /metrics.\n"]

    server.set_app(application)

    def serve(*clients: Client, min_isr: MinIsrOfTopics | None = None) -> None:
        registry.register(collector(*clients, min_isr=min_isr))

    try:
        yield serve
    finally:
        server.shutdown()
        server.server_close()


def _nothing(*clients: Client, min_isr: MinIsrOfTopics | None = None) -> None:
    """Serves no metrics."""
