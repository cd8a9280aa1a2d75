"""`rdmeta pipeline`: tables from recorded history, and whether they are whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rdmeta.cli.messages import FINE, UNMET, BadInputError, Messages
from rdmeta.cli.output import Output, Row, Table, columns
from rdmeta.cli.shared_options import pair, seconds, variable_of

if TYPE_CHECKING:
    from rdmeta.pipeline import Fault, Made, Plan, Progress
    from rdmeta.pipeline.errors import BadFileError
    from rdmeta.pipeline.work import AnyTask, Engine, Result

_KINDS = ("folder", "delta", "iceberg")  # as in pipeline.layout, whose import takes a while
_ACTIONS = ("bronze", "silver", "gold", "all", "check", "vacuum")
_LISTED = 20
_MANY_ROWS = 20_000_000  # for more, the start of Spark costs little beside the work
_FLAP_SECONDS = 600
_OF_A_RUN = (
    *("in_place", "clusters", "since", "until", "names", "master"),
    *("min_isr", "flap_seconds", "tables", "catalog", "overwrite_foreign"),
)
_COUNT = click.IntRange(1, 2**31 - 1)
# For an action that leaves no file out: what it does, and the options that it refuses.
_WHOLE = {
    "bronze": (
        "copies all input",
        ("in_place", "clusters", "since", "until", "min_isr", "flap_seconds"),
    ),
    "silver": ("makes no gold", ("min_isr", "flap_seconds")),
    "gold": ("makes the months that differ from silver", ("in_place", "since", "until")),
    "check": ("compares all files", (*_OF_A_RUN, "dry_run")),
    "vacuum": ("removes files of older versions", _OF_A_RUN),
}


def day_option(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Returns the day that an option names; raises UsageError for another text."""
    if value is None:
        return None
    from rdmeta.pipeline.days import is_day

    if is_day(value):
        return value
    raise click.UsageError(f"{option.opts[-1]} needs a day such as 2026-11-22", context)


_Function = TypeVar("_Function", bound=Callable[..., Any])


def store_options(function: _Function) -> _Function:
    """Adds --timeout, -F and -X, as commands on folders of object stores take them."""
    for option in reversed(_STORE_OPTIONS):
        function = option(function)
    return function


_STORE_OPTIONS = (
    click.option(
        "--timeout",
        metavar="S",
        type=float,
        default=30.0,
        show_default=True,
        callback=seconds,
        help="How long to wait for an object store's first answer.",
    ),
    click.option(
        "-F",
        "--config",
        "config_file",
        metavar="FILE",
        help="A properties file with options storage.*: credentials of object stores.",
    ),
    click.option(
        "-X",
        "settings",
        metavar="storage.KEY=VALUE",
        multiple=True,
        callback=pair,
        help="Such an option; it wins over -F. Arguments show in ps: give a secret in the file of"
        " -F, or as RDMETA_STORAGE_SECRET_KEY and so on.",
    ),
)


@click.command(
    epilog="""\b
Examples:
  rdmeta pipeline all history tables --engine spark --min-isr 2
  rdmeta pipeline check tables
"""
)
@click.argument(
    "action", type=click.Choice(_ACTIONS), metavar="bronze|silver|gold|all|check|vacuum"
)
@click.argument("places", nargs=-1, metavar="[IN...] OUT")
@click.option("--in-place", is_flag=True, help="Read the input where it lies, and copy nothing.")
@click.option("--clusters", metavar="ID|NAME,...", help="Make the tables of these clusters only.")
@click.option(
    "--since", metavar="DAY", callback=day_option, help="Leave days before this one alone."
)
@click.option(
    "--until", metavar="DAY", callback=day_option, help="Leave this day and later ones alone."
)
@click.option(
    "--names",
    metavar="FILE",
    help="A file with lines ID=NAME: what people call a cluster; it wins over record -c.",
)
@click.option(
    "--engine",
    type=click.Choice(("auto", "local", "spark")),
    default="auto",
    show_default=True,
    help="local: processes of this machine, without Java; spark: Spark's executors; auto: spark if"
    " --master or SPARK_REMOTE names one, or for more than 20 million rows.",
)
@click.option(
    "--master",
    metavar="URL",
    help="Spark's master, or sc://HOST:PORT; every core of this machine if absent.",
)
@click.option(
    "--tables",
    type=click.Choice(_KINDS),
    help="folder: Parquet files alone; delta, iceberg: tables of Delta Lake or Apache Iceberg, one"
    " commit each and run. OUT keeps the kind that it began with.  [default: folder]",
)
@click.option(
    "--catalog",
    metavar="NAME",
    help="iceberg: the catalog of that name in pyiceberg's configuration.  [default: one in OUT]",
)
@click.option(
    "--overwrite-foreign",
    is_flag=True,
    help="Take files out of tables that another program has added.",
)
@click.option(
    "--older-than",
    metavar="AGE",
    help="vacuum: remove what only versions older than this have, such as 7d, 36h or 2w.",
)
@click.option(
    "--min-isr",
    metavar="N",
    type=_COUNT,
    help="Gold: the min ISR where none was recorded. Without it such minutes are unknown.",
)
@click.option(
    "--flap-seconds",
    metavar="S",
    type=_COUNT,
    help="Gold: a broker that is back in an ISR within this time has flapped.  [default: 600]",
)
@store_options
@click.option("--dry-run", is_flag=True, help="Print what would be made, and why; write nothing.")
@click.option(
    "--strict", is_flag=True, help="Exit with 1 if input is quarantined, set aside or missing."
)
@click.option("--json", "json", is_flag=True, help="Print JSON.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only: no tables, no progress.")
@click.pass_obj
def command(
    messages: Messages,
    action: str,
    places: tuple[str, ...],
    in_place: bool,
    clusters: str | None,
    since: str | None,
    until: str | None,
    names: str | None,
    engine: str,
    master: str | None,
    tables: str | None,
    catalog: str | None,
    overwrite_foreign: bool,
    older_than: str | None,
    min_isr: int | None,
    flap_seconds: int | None,
    timeout: float,
    config_file: str | None,
    settings: Sequence[tuple[str, str]],
    dry_run: bool,
    strict: bool,
    json: bool,
    quiet: bool,
) -> int:
    """Make tables from recorded history, and check them.

    \b
    bronze IN... OUT   copies the input to OUT/bronze, checked.
    silver IN... OUT   makes the tables from the input where it lies.
    silver OUT         makes them from the copies in OUT/bronze.
    gold OUT           makes the measures, by month, from silver in OUT.
    all IN... OUT      does all three: copies, tables and measures.
    check OUT          compares all files with OUT/manifest.json; exit code 1
                       if one differs.
    vacuum OUT         removes files that only older versions of tables have,
                       with --older-than.

    IN is a directory that `rdmeta record` wrote to, or one with metadata logs of KRaft (directories
    __cluster_metadata-0). Recordings may lie at a URI, such as s3://bucket/folder, and so may OUT.
    Only what is new or has changed is made. A file is complete or absent, even after kill -9.
    """
    messages.level = -1 if quiet else 0
    output = Output("json" if json else "text")
    inputs, out = _places(action, places)
    if engine == "local" and master is not None:
        raise BadInputError("--master needs --engine spark or auto")
    if catalog is not None and tables in ("folder", "delta"):
        raise BadInputError("--catalog needs --tables iceberg")
    _refuse_unused(action, click.get_current_context().params)
    if since is not None and until is not None and since >= until:
        raise BadInputError(f"--since {since} is not before --until {until}")
    if (older_than is None) == (action == "vacuum"):
        raise BadInputError("pipeline vacuum needs --older-than, such as 7d; no other action does")
    storage = storage_options(config_file, settings)
    if action == "check":
        return _checked(out, timeout, storage, output)
    if older_than is not None:
        return _vacuumed(out, older_than, dry_run, timeout, storage, output)
    from rdmeta import pipeline

    why = ""
    if engine == "auto":
        engine, why = _named_engine(master)
    with _spark(master, quiet) as spark:
        plan = pipeline.plan(
            inputs,
            out,
            clusters=chosen_clusters(clusters),
            since=since,
            until=until,
            names=_names(names),
            in_place=in_place or action == "silver",
            silver=action in ("silver", "all"),
            gold=action in ("gold", "all"),
            min_isr=min_isr,
            flap_seconds=flap_seconds or _FLAP_SECONDS,
            timeout=timeout,
            tables=tables,
            catalog=catalog,
            overwrite_foreign=overwrite_foreign,
            storage=storage,
            engine=spark if engine == "spark" and not dry_run else None,
        )
        if not engine:
            engine, why = _engine_of_rows(plan)
        if why:
            messages.note(f"the tasks run {_ENGINES[engine]}, as {why} (--engine chooses another)")
        if dry_run:
            _print_plan(output, action, engine, plan)
        else:
            run_tasks = spark if engine == "spark" else None
            if run_tasks and (plan.copies or plan.log_tasks or plan.tasks or plan.months):
                _require_spark(master)
            with _progress(quiet) as progress:
                made = pipeline.run(plan, engine=run_tasks, progress=progress)
    if not dry_run:
        plan = made.plan
        if json or not quiet:
            _print_made(output, action, engine, made)
        _tell_unknown(made, messages)
    _tell(plan, messages)
    return UNMET if strict and (plan.quarantined or plan.gone) else FINE


def storage_options(path: str | None, settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Returns the options storage.* of the environment, a file and -X; the last one wins.

    Raises BadInputError for another option, and shows no value.
    """
    from rdmeta.config.properties import read_properties
    from rdmeta.pipeline.storage import OPTIONS, PREFIX

    names = {variable_of(f"{PREFIX}{name}"): f"{PREFIX}{name}" for name in OPTIONS}
    given = {names[each]: value for each, value in os.environ.items() if each in names}
    given |= read_properties(path) if path is not None else {}
    given |= dict(settings)
    for name in given:
        if not name.startswith(PREFIX):
            command = click.get_current_context().command_path
            raise BadInputError(f"{name} is no option of {command}: it takes {PREFIX}*")
    return {name.removeprefix(PREFIX): value for name, value in given.items()}


def _refuse_unused(action: str, options: Mapping[str, object]) -> None:
    """Raises BadInputError for an option that the action would pass over."""
    what, unused = _WHOLE.get(action, ("", ()))
    for name in unused:
        if options[name]:
            option = name.replace("_", "-")
            raise BadInputError(f"pipeline {action} {what}, so it takes no --{option}")


def _places(action: str, places: Sequence[str]) -> tuple[Sequence[str], str]:
    """Returns the inputs and the output folder; raises BadInputError."""
    least = 2 if action in ("bronze", "all") else 1
    if len(places) < least or (action in ("check", "gold", "vacuum") and len(places) > 1):
        wanted = "OUT" if action in ("check", "gold", "vacuum") else "IN... OUT"
        wanted = "[IN...] OUT" if action == "silver" else wanted
        raise BadInputError(f"pipeline {action} takes {wanted}, not {len(places)} words")
    return places[:-1], places[-1]


def chosen_clusters(clusters: str | None) -> Sequence[str] | None:
    """Returns the clusters of a list with commas, None for all; raises BadInputError."""
    if clusters is None:
        return None
    found = [each for each in clusters.split(",") if each]
    if not found:
        raise BadInputError("--clusters needs the id or the name of a cluster")
    return found


def _names(path: str | None) -> Mapping[str, str]:
    """Returns the names by cluster id that a file gives; raises BadInputError."""
    if path is None:
        return {}
    from rdmeta.config.properties import read_properties

    return read_properties(path)


_ENGINES = {"local": "in processes of this machine", "spark": "on Spark"}


def _named_engine(master: str | None) -> tuple[str, str]:
    """Returns the engine that the user names, and how; "" for none."""
    if master:
        return "spark", "--master names one"
    if os.environ.get("SPARK_REMOTE"):
        return "spark", "SPARK_REMOTE names one"
    return "", ""


def _engine_of_rows(plan: Plan) -> tuple[str, str]:
    """Returns the engine that suits a plan, and why."""
    copied = sum(copy.source.rows for copy in plan.copies)
    rows = max(copied, sum(task.rows for task in plan.tasks))
    rows += sum(month.rows for month in plan.months)
    why = f"the plan has {rows} rows"
    if rows <= _MANY_ROWS:
        return "local", why
    from rdmeta.errors import MissingExtraError
    from rdmeta.spark.spark_session import NoJavaError, find_spark

    try:
        find_spark()
    except (NoJavaError, MissingExtraError) as error:
        return "local", f"Spark cannot start for the plan's {rows} rows: {error}"
    return "spark", why


def _require_spark(master: str | None) -> None:
    """Raises BadInputError if Spark cannot start."""
    from rdmeta.errors import MissingExtraError
    from rdmeta.spark.spark_session import NoJavaError, find_spark

    try:
        find_spark(master)
    except (NoJavaError, MissingExtraError) as error:
        raise BadInputError(f"{error}, or give --engine local") from error


@contextmanager
def _spark(master: str | None, quiet: bool) -> Iterator[Engine]:
    """Yields what runs tasks on Spark, which starts with the first one and ends with the block."""
    with ExitStack() as stack:
        engines: list[Engine] = []

        def run_tasks(tasks: Sequence[AnyTask]) -> Iterator[Result | BadFileError]:
            if not engines:
                _require_spark(master)
                from rdmeta.spark.executors import session_engine

                engines.append(stack.enter_context(session_engine(master)))
            yield from (_begun_quietly(engines[0]) if quiet else engines[0])(tasks)

        yield run_tasks


def _begun_quietly(engine: Engine) -> Engine:
    """Returns the engine, whose Java gets no stderr: Spark would log to it."""

    def run_tasks(tasks: Sequence[AnyTask]) -> Iterator[Result | BadFileError]:
        results = engine(tasks)
        with _no_stderr():
            first = next(results, None)
        if first is not None:
            yield first
            yield from results

    return run_tasks


@contextmanager
def _no_stderr() -> Iterator[None]:
    """Sends what the block, and processes that it starts, write to stderr nowhere."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


# ---- progress -----------------------------------------------------------------------------------

_STAGES = {"copy": "bronze", "logs": "logs", "make": "silver", "gold": "gold"}


class _Bars:
    """A bar for each stage, with its steps, rows, bytes and the time that is left."""

    def __init__(self, bars: Any) -> None:
        self._bars = bars
        self._task: Any = None

    def begin(self, stage: str, steps: int, rows: int, size: int) -> None:
        self._task = self._bars.add_task(_STAGES[stage], total=steps, rows=0, size="0")
        self._rows = self._size = 0

    def step(self, rows: int, size: int) -> None:
        self._rows += rows
        self._size += size
        shown = f"{self._size / 1e6:.1f}"
        self._bars.update(self._task, advance=1, rows=self._rows, size=shown)


@contextmanager
def _progress(quiet: bool) -> Iterator[Progress | None]:
    """Yields bars on stderr if that is a terminal, else None."""
    import sys

    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    if quiet or not is_terminal or os.environ.get("TERM") == "dumb":
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rows]} rows, {task.fields[size]} MB"),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        yield _Bars(bars)


# ---- what a run did -----------------------------------------------------------------------------


def _print_made(output: Output, action: str, engine: str, made: Made) -> None:
    tables, counts = _tables(made), _counts(made)
    head = {"version": 1, "command": "pipeline", "action": action, "dry_run": False}
    found = {**head, "engine": engine, "out": made.plan.options.out, "tables": tables, **counts}
    output.answer(
        {**found, **_logs(made.plan), **_faults(made.plan)},
        *_log_tables(made.plan),
        Table(_TABLE_COLUMNS, [[name, *values.values()] for name, values in tables.items()]),
        Table(_COUNT_COLUMNS, list(counts.items())),
    )


_TABLE_COLUMNS = columns("table rows:integer bytes:integer parts:integer made:integer")
_COUNT_COLUMNS = columns("what count:integer")


def _tables(made: Made) -> dict[str, dict[str, int]]:
    """Returns rows, bytes and parts of each table as it lies there now."""
    found: dict[str, dict[str, int]] = {}
    new = {file.name for file in made.made}
    for name, file in made.files.items():
        if not name.startswith(("silver/", "gold/")):
            continue
        table = found.setdefault(name.split("/")[2], {"rows": 0, "bytes": 0, "parts": 0, "made": 0})
        for what, value in (("rows", file.rows), ("bytes", file.bytes), ("parts", 1)):
            table[what] += value
        table["made"] += name in new
    return found


def _counts(made: Made) -> dict[str, int]:
    """Returns the numbers of the summary."""
    plan = made.plan
    holes, hole_us = plan.holes
    states = [each.state for each in plan.files]
    new = {*made.copied, *(file.name for file in made.made)}
    written = [file for name, file in made.files.items() if name in new]
    return {
        "read": states.count("good"),
        "copied": len(made.copied),
        "skipped": states.count("copied") + states.count("duplicate") - len(made.copied),
        "quarantined": states.count("quarantined") + states.count("set aside"),
        "made": len(made.made),
        "unchanged": made.unchanged,
        "gone": len(plan.gone),
        "holes": holes,
        "hole_seconds": hole_us // 1_000_000,
        "rows_in": made.rows.get("read", 0),
        "rows_out": made.rows.get("rows", 0),
        "rows_written": sum(each.rows for each in written),
        "bytes_written": sum(each.bytes for each in written),
    }


def _logs(plan: Plan) -> dict[str, Any]:
    """Returns what is known of the metadata logs of clusters; nothing without logs."""
    found = [
        {
            "cluster_id": cluster_id,
            "nodes": list(log.nodes),
            "first": log.first,
            "end": log.end,
            "proven_to": log.proof.end,
            "proven_by": log.proof.by,
            "waits": log.waits,
            "clocks_back": log.clocks_back,
            "holes": [each._asdict() for each in log.holes],
        }
        for cluster_id, log in plan.logs.items()
    ]
    return {"logs": found} if found else {}


_LOG_COLUMNS = columns(
    "log nodes:integers first:integer end:integer proven_to:integer proven_by waits holes:texts"
)


def _log_tables(plan: Plan) -> list[Table]:
    """Returns the table of metadata logs, none without logs."""
    rows = []
    for cluster_id, log in plan.logs.items():
        proof, part = log.proof, (cluster_id, log.nodes, log.first, log.end)
        holes = tuple(f"{each.first} to {each.end - 1}: {each.reason}" for each in log.holes)
        rows.append((*part, proof.end, proof.by, log.waits, holes))
    return [Table(_LOG_COLUMNS, rows)] if rows else []


def _faults(plan: Plan) -> dict[str, Any]:
    return {
        "faults": [{"path": each.path, "reason": each.reason} for each in plan.quarantined],
        "days_gone": [{"cluster_id": cluster, "day": day} for cluster, day in plan.gone],
    }


def _tell(plan: Plan, messages: Messages) -> None:
    """Says on stderr what is not read, and which days have lost their input."""
    lines = [f"{each.path}: {each.state}: {each.reason}" for each in plan.quarantined]
    lines += [f"{c}: input of {day} is gone; its tables stay" for c, day in plan.gone]
    for line in lines[:_LISTED]:
        messages.note(line)
    if len(lines) > _LISTED:
        messages.note(f"and {len(lines) - _LISTED} more; --json lists all of them")


def _tell_unknown(made: Made, messages: Messages) -> None:
    """Says once what the run has passed over, as a later version of rdmeta wrote it."""
    columns = {name for each in made.plan.files for name in each.unknown_columns.split()}
    if columns:
        shown = ", ".join(sorted(columns))
        messages.note(f"this version does not know these columns, and passes over them: {shown}")
    records = sum(each.unknown_records or 0 for each in made.plan.files)
    if records:
        messages.note(
            f"this version does not know the types of {records} records of metadata logs: passed"
            " over, and what the days of these have is partial"
        )
    if made.rows.get("unknown_kinds"):
        count = made.rows["unknown_kinds"]
        messages.note(f"this version does not know the kinds of {count} changes: passed over")


# ---- what a run would do ------------------------------------------------------------------------

_TASK_COLUMNS = columns("cluster periods:texts part rows:integer reason")


def _print_plan(output: Output, action: str, engine: str, plan: Plan) -> None:
    tasks = plan.steps
    head = {"version": 1, "command": "pipeline", "action": action, "dry_run": True}
    found = {**head, "engine": engine, "out": plan.options.out, "tasks": tasks, **_logs(plan)}
    rest = {"copies": len(plan.copies), "unchanged": len(plan.unchanged), **_faults(plan)}
    copies: list[Row] = [[each.source.path, each.name] for each in plan.copies]
    rows = [[tuple(v) if isinstance(v, list) else v for v in task.values()] for task in tasks]
    shown = [Table(columns("copy to"), copies)] if copies else []
    output.answer({**found, **rest}, *_log_tables(plan), *shown, Table(_TASK_COLUMNS, rows))


# ---- check --------------------------------------------------------------------------------------


def _checked(out: str, timeout: float, storage: Mapping[str, str], output: Output) -> int:
    from rdmeta import pipeline
    from rdmeta.pipeline.storage import split

    faults: list[Fault] = pipeline.check(out, timeout=timeout, storage=storage)
    head = {"version": 1, "command": "pipeline", "action": "check", "out": split(out)[0]}
    found = {**head, "faults": [each._asdict() for each in faults]}
    output.answer(found, Table(columns("file fault"), faults))
    return UNMET if faults else FINE


# ---- vacuum -------------------------------------------------------------------------------------


def _vacuumed(
    out: str,
    older_than: str,
    dry_run: bool,
    timeout: float,
    storage: Mapping[str, str],
    output: Output,
) -> int:
    from rdmeta import pipeline
    from rdmeta.pipeline.storage import split

    found = pipeline.vacuum(out, older_than, dry_run=dry_run, timeout=timeout, storage=storage)
    head = {"version": 1, "command": "pipeline", "action": "vacuum", "dry_run": dry_run}
    values = {**head, "out": split(out)[0], "removed": list(found.files), "bytes": found.bytes}
    output.answer(values, Table(columns("removed"), [[name] for name in found.files]))
    return FINE
