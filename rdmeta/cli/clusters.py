"""Which clusters a command asks: the file of clusters, and asking several side by side."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

from rdmeta.cli.messages import BadInputError, Messages, nearest

__all__ = ["Target", "clusters_file", "named_clusters", "side_by_side"]

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
    except FileNotFoundError:
        raise BadInputError(
            f"{path}: there is no such file: make it, with a section such as [prod] for each"
            " cluster, or name another one in RDMETA_CLUSTERS"
        ) from None
    except UnicodeDecodeError:
        raise BadInputError(f"{path}: it is not UTF-8") from None
    except configparser.DuplicateSectionError as error:
        fault = f"line {error.lineno}: there are two sections [{error.section}]"
        raise BadInputError(f"{path}: {fault}") from None
    except configparser.DuplicateOptionError as error:
        fault = f"line {error.lineno}: [{error.section}] has {error.option} twice"
        raise BadInputError(f"{path}: {fault}") from None
    except configparser.MissingSectionHeaderError as error:
        fault = f"line {error.lineno}: a section such as [prod] must come first"
        raise BadInputError(f"{path}: {fault}") from None
    except configparser.ParsingError as error:
        fault = f"line {error.errors[0][0]}: expected key = value"
        raise BadInputError(f"{path}: {fault}") from None
    return {name: dict(parser.items(name)) for name in parser.sections()}


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


def _outcome(work: Callable[[Target], _T], target: Target) -> _T | Exception:
    try:
        return work(target)
    except Exception as error:
        return error
