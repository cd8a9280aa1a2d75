"""`rdmeta completion`: completion for bash, zsh and fish, with names of topics and clusters."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    split_arg_string,
)

from rdmeta.cli.messages import BAD_INPUT, COMPLETE, FINE, Messages
from rdmeta.cli.output import open_stdout

# Seconds for all of a completion's questions to clusters.
_MOST_S = 1.0
_MOST_CLUSTERS = 16


@click.command(
    epilog="""\b
Examples:
  rdmeta completion bash
  rdmeta completion fish
"""
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> int:
    """Print the completion of commands, options, topics and clusters for a shell.

    \b
    bash: eval "$(rdmeta completion bash)"      in ~/.bashrc
    zsh:  eval "$(rdmeta completion zsh)"       in ~/.zshrc, after compinit
    fish: rdmeta completion fish > ~/.config/fish/completions/rdmeta.fish

    Names of topics come from the cluster that the environment and the options on the line name. It
    has one second to answer. Without an answer there are no names, and no error.
    """
    print(_source(shell), file=open_stdout())
    return FINE


def answer(instruction: str, group: click.Group, commands: Mapping[str, str]) -> int:
    """Prints the completions for a shell's question, such as bash_complete; returns the exit code.

    `commands` are those of the group, with what each does. The question is in the environment, as
    the shell's function sets it. An error prints nothing.
    """
    shell = _SHELLS.get(instruction.partition("_")[0])
    if shell is None:
        return BAD_INPUT
    errors, sys.stderr = sys.stderr, None  # a word there would spoil the line that is typed
    try:
        found = _asking(shell, group, commands).complete()
    except Exception:  # any fault of a line that is not whole yet
        found = ""
    finally:
        sys.stderr = errors
    print(found)
    return FINE


# ---- the shells ---------------------------------------------------------------------------------


class _Line(NamedTuple):
    """The words that are typed, before and after the one that is completed."""

    before: Sequence[str]
    after: Sequence[str]


# Before click 8.4 the class takes no parameter.
if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType


class _Names(_ParamType):
    """The type of an option whose values are names; it is given while a shell asks."""

    name = "name"

    def __init__(self, line: _Line, deadline: float) -> None:
        self._line, self._deadline = line, deadline


class _TopicNames(_Names):
    """Names of topics."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[str]]:
        from rdmeta.model import topic_fault

        given = _given(ctx, param, self._line)
        names = sorted(_topic_names(given, self._deadline))
        # A shell takes each line as a word: a hostile broker must not choose its characters.
        legal = [each for each in names if topic_fault(each) is None]
        return [CompletionItem(each) for each in legal if each.startswith(incomplete)]


class _Clusters(_Names):
    """Names of the clusters file, also after a comma."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[str]]:
        from rdmeta.cli.shared_options import named_clusters

        names = [name for name, _ in named_clusters("all", _quiet()) if name.isprintable()]
        head, comma, last = incomplete.rpartition(",")
        known = names if comma else ["all", *names]
        return [CompletionItem(head + comma + each) for each in known if each.startswith(last)]


_FILES = {
    **dict.fromkeys(("FILE", "PATH", "PATH..."), click.Path()),
    "DIR": click.Path(file_okay=False),
}


class _Question(ShellComplete):
    """Completes names as well, and imports one command at most."""

    commands: Mapping[str, str]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        name = next((each for each in args if not each.startswith("-")), "")
        if not name and not incomplete.startswith("-"):
            known = self.commands.items()
            return [
                CompletionItem(each, help=text)
                for each, text in known
                if each.startswith(incomplete)
            ]
        if name not in self.commands or not isinstance(self.cli, click.Group):
            return super().get_completions(args, incomplete)
        found = self.cli.get_command(click.Context(self.cli), name)
        assert found is not None
        types = [each.type for each in found.params]
        line = _Line(args[args.index(name) + 1 :], self.words_after())
        try:
            for each in found.params:
                _set_type(each, line)
            return super().get_completions(args, incomplete)
        finally:
            for each, type in zip(found.params, types, strict=True):
                each.type = type

    def words_after(self) -> list[str]:
        """Returns the words after the one that is completed."""
        return split_arg_string(os.environ["COMP_WORDS"])[int(os.environ["COMP_CWORD"]) + 1 :]


def _set_type(param: click.Parameter, line: _Line) -> None:
    if "-t" in param.opts:
        param.type = _TopicNames(line, time.monotonic() + _MOST_S)
    elif "--cluster" in param.opts:
        param.type = _Clusters(line, 0.0)
    elif param.metavar in _FILES:
        param.type = _FILES[param.metavar]


class _Bash(_Question, BashComplete):
    """bash: its words end at a colon or an equals sign, so the line itself is used."""

    source_template = BashComplete.source_template.replace(
        'COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD',
        'COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT"',
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        typed = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
        words = split_arg_string(typed)[1:]
        incomplete = words.pop() if words and not typed[-1].isspace() else ""
        return words, incomplete

    def words_after(self) -> list[str]:
        rest = os.environ["COMP_LINE"][int(os.environ["COMP_POINT"]) :]
        return split_arg_string(rest if rest[:1].isspace() else rest.partition(" ")[2])


class _Zsh(_Question, ZshComplete):
    """zsh."""


class _Fish(_Question, FishComplete):
    """fish, which does not tell what follows. A value and its help may have commas."""

    source_template = FishComplete.source_template.replace(
        'string split ","', 'string split --max 1 ","'
    )

    def words_after(self) -> list[str]:
        return []


_SHELLS: dict[str, type[_Question]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def _asking(
    shell: type[_Question], group: click.Command, commands: Mapping[str, str]
) -> ShellComplete:
    asking = shell(group, {"obj": _quiet()}, "rdmeta", COMPLETE)
    asking.commands = commands
    return asking


def _source(shell: str) -> str:
    # Not source(): for bash it starts one, to look for a version that is older than ten years.
    asking = _asking(_SHELLS[shell], command, {})
    return asking.source_template % asking.source_vars()


def _quiet() -> Messages:
    messages = Messages()
    messages.level = -1
    return messages


# ---- names of topics ----------------------------------------------------------------------------


def _given(ctx: click.Context, param: click.Parameter, line: _Line) -> Mapping[str, Any]:
    """Returns the values of the options on the line, also of those after the completed word."""
    before = list(line.before)
    if before and before[-1] in param.opts:
        before.pop()
    whole = ctx.command.make_context(
        ctx.info_name, [*before, *line.after], resilient_parsing=True, obj=_quiet()
    )
    return whole.params


def _topic_names(given: Mapping[str, Any], deadline: float) -> set[str]:
    """Returns the names of the topics of the named clusters that answer until the deadline."""
    from rdmeta.cache import MetadataCache
    from rdmeta.cli.shared_options import Target, Where
    from rdmeta.net.fetch import fetch

    where = Where(
        given["bootstrap"],
        given["config_file"],
        given["settings"] or (),
        given["clusters"],
        _MOST_S,
        _quiet(),
    )
    found: set[str] = set()

    def ask(target: Target) -> None:
        cache = MetadataCache()
        try:
            fetch(cache, timeout=max(0.0, deadline - time.monotonic()), **target.arguments())
        except Exception:  # then there are no names
            return
        found.update(cache.names(allow_stale=True))

    threads = [
        threading.Thread(target=ask, args=[target], name="rdmeta-completion", daemon=True)
        for target in where.targets()[:_MOST_CLUSTERS]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:  # a name may take longer to be resolved
        thread.join(max(0.0, deadline - time.monotonic()))
    return set(found)
