"""The table of commands, and how a run ends: errors, Ctrl-C, SIGTERM, a closed pipe."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from rdmeta import __version__
from rdmeta.cli.messages import BAD_INPUT, COMPLETE, FINE, INTERRUPTED, Messages, nearest

# Each command is the `command` of the module of that name in this package. The group's help has
# these lines, so that it imports no command.
COMMANDS = {
    "list": "Brokers, topics and partitions, and which of them need care.",
    "image": "The state of a cluster in a file: save it, compare it, check it.",
    "quorum": "The controllers of a KRaft cluster, and how far each node is behind.",
    "log": "The metadata log of KRaft in files: its records, and what was true at a moment.",
    "publish": "A feeder: the other processes of this host attach to its state.",
    "record": "The history of clusters in Parquet files.",
    "pipeline": "Tables from recorded history: leaders over time, and what was not seen.",
    "report": "One page about what happened to a fleet: incidents, brokers, balance.",
    "generate": "Recordings and logs of clusters whose truth is known, to try the pipeline on.",
    "wait": "Returns when topics, brokers and replicas are as they should be.",
    "watch": "Changes of clusters as they come.",
    "config": "The options, what is set and from where; --check tries every server.",
    "embedded": "A cluster to play with, on its own or around another command.",
    "completion": "Completion of commands, options, topics and clusters, for a shell.",
}

# Those that end by themselves, soon and without much garbage.
_BRIEF = ("list", "image", "config", "completion", "log")


class Terminated(BaseException):
    """SIGTERM came; it unwinds the stack, so that files are closed."""


class _Commands(click.Group):
    """A group that imports a command when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found = import_module(f"rdmeta.cli.{cmd_name}").command
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = nearest(name, COMMANDS)
            advice = f"did you mean {near}?" if near else f"it is one of {', '.join(COMMANDS)}"
            raise click.UsageError(f"there is no command {name!r}; {advice}", ctx)
        found = super().resolve_command(ctx, args)
        if name not in _BRIEF:
            gc.enable()  # main() has switched it off
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=_Commands,
    no_args_is_help=False,  # releases of click do that differently
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Each command has its own --help, with examples.",
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def group() -> None:
    """Metadata of Kafka clusters: leaders, replicas, ISR, and how they change.

    Exit codes: 0 fine, 1 a condition is not met, 2 usage or bad input, 3 no usable answer from a
    cluster, 130 Ctrl-C.
    """


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code.

    Each error is one line on stderr. A pipe that its reader closed ends the run quietly. After
    SIGTERM, files are closed first; then the signal ends the process.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # a character that the locale lacks is escaped
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    if COMPLETE in os.environ:
        from rdmeta.cli.completion import answer

        return answer(os.environ[COMPLETE], group, COMMANDS)
    messages = Messages()
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = _outcome(arguments, messages)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _drop_output()
        return FINE
    except OSError as error:
        _drop_output()
        return messages.failure(error)
    except KeyboardInterrupt:
        _drop_output()
        return INTERRUPTED
    except Terminated:
        _drop_output()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
        raise


def _outcome(arguments: Sequence[str], messages: Messages) -> int:
    try:
        width = _help_width()
        with group.make_context(
            "rdmeta", list(arguments), obj=messages, terminal_width=width
        ) as context:
            if not arguments:
                click.echo(context.get_help(), err=True)
                return BAD_INPUT
            return int(group.invoke(context) or FINE)
    except click.exceptions.Exit as ended:
        if sys.stdout is None and not ended.exit_code:
            messages.fault("stdout is closed")  # the help, or the version, was not seen
            return BAD_INPUT
        return ended.exit_code
    except click.ClickException as error:
        messages.fault(_usage(error))
        return BAD_INPUT
    except (OSError, KeyboardInterrupt):
        raise
    except Exception as error:
        return messages.failure(error)


def _help_width() -> int:
    """Returns the width of help: that of the terminal, within limits.

    click would import shutil for it, which takes longer than everything else in this module.
    """
    try:
        columns = int(os.environ.get("COLUMNS", 0)) or os.get_terminal_size(1).columns
    except (OSError, ValueError):
        columns = 0
    return max(50, min(columns or 80, 100) - 2)


def _usage(error: click.ClickException) -> str:
    """Returns a usage error as one line, with the command whose help says more."""
    if isinstance(error, click.NoSuchOption):
        near = nearest(error.option_name, error.possibilities or (), 0.0)
        advice = f"; did you mean {near}?" if near else ""
        text = f"there is no option {error.option_name}{advice}"
    else:
        text = " ".join(error.format_message().split()).rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    return text if context is None else f"{text} (see {context.command_path} --help)"


def _drop_output() -> None:
    """Sends what is still to be written nowhere, so that the exit does not fail on it."""
    if sys.stdout is None:
        return
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _terminate(number: int, frame: Any) -> None:
    raise Terminated
