"""`rdmeta image`: the state of a cluster in a file; what differs; whether a file is whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import click

from rdmeta.cache import Image, MetadataCache
from rdmeta.cli.change_rows import change_object, change_row, old_and_new
from rdmeta.cli.log_options import LogChoice, state_options
from rdmeta.cli.messages import FINE, UNMET, BadInputError
from rdmeta.cli.output import Output, Row, Table, columns, json_text
from rdmeta.cli.shared_options import Where, connection_options, new_file, output_options
from rdmeta.errors import Error
from rdmeta.model import Changes

# A command of rdmeta has one page of help, so these are words, and not commands of their own.
_ACTIONS = ("save", "diff", "verify")


@click.command(
    epilog="""\b
Examples:
  rdmeta image save before.rdmeta
  rdmeta image diff before.rdmeta
"""
)
@click.argument("action", type=click.Choice(_ACTIONS), metavar="save|diff|verify")
@click.argument("files", nargs=-1, metavar="FILE [FILE]")
@state_options
@connection_options
@output_options
def command(
    where: Where, output: Output, action: str, files: tuple[str, ...], log: LogChoice | None
) -> int:
    """Save the state of a cluster in a file, compare states, or check a file.

    \b
    save FILE          writes the state now; the file is complete or absent.
    diff FILE [FILE]   prints what differs between the file and now, or another
                       file; exit code 1 if anything does.
    verify FILE        checks every byte; exit code 2 if the file is damaged.

    With --log, now is a moment of a metadata log: --at T, or its end. A file is what Image.save()
    and `rdmeta publish` write; list --image shows it.
    """
    if not 1 <= len(files) <= (2 if action == "diff" else 1):
        count = "one FILE, or two" if action == "diff" else "one FILE"
        raise BadInputError(f"image {action} takes {count}, not {len(files)}")
    if action == "verify" or len(files) == 2:
        _refuse_cluster(where, action)
        if log is not None:
            raise BadInputError(f"image {action} reads its files alone: leave out --log")
    elif log is not None:
        _refuse_cluster(where, f"{action} --log")
    return _RUN[action](Now(where, log), output, files)


class Now(NamedTuple):
    """What is compared or saved: a cluster, or a state of a metadata log."""

    where: Where
    log: LogChoice | None


def _refuse_cluster(where: Where, action: str) -> None:
    """Raises BadInputError if the command line names a cluster."""
    if where.bootstrap is not None or where.clusters is not None:
        raise BadInputError(f"image {action} reads files and asks no cluster: leave out -b and -c")


def _save(now: Now, output: Output, files: Sequence[str]) -> int:
    path = new_file(files[0])
    image = _state_now(now)
    image.save(path, sync=True)
    _print_image(output, "save", files[0], image)
    return FINE


def _verify(now: Now, output: Output, files: Sequence[str]) -> int:
    _print_image(output, "verify", files[0], _whole(files[0]))
    return FINE


def _diff(now: Now, output: Output, files: Sequence[str]) -> int:
    before = _whole(files[0])
    after = _whole(files[1]) if len(files) == 2 else _state_now(now)
    changes = before.diff(after)
    if output.form == "json":
        output.json(_diff_json(before, after, changes))
    else:
        output.tables(Table(_CHANGE_COLUMNS, _change_rows(changes)))
    return UNMET if len(changes) else FINE


_RUN: dict[str, Callable[[Now, Output, Sequence[str]], int]] = {
    "save": _save,
    "diff": _diff,
    "verify": _verify,
}


def _state_now(now: Now) -> Image:
    """Returns what the log or the cluster says about all topics; raises the errors of fetch()."""
    where = now.where
    if now.log is not None:
        from rdmeta.cli.log_opening import chosen_state

        return chosen_state(now.log, where.messages).image()
    from rdmeta.net.fetch import fetch

    cache, arguments = MetadataCache(), where.target().arguments()
    if where.messages.level > 0 or "conf" in arguments:
        where.messages.log(quietly=True)
    fetch(cache, timeout=where.timeout, **arguments)
    return cache.image()


def _whole(path: str) -> Image:
    """Returns the state in a file after checking all of it; raises BadInputError, OSError.

    It is a copy in memory: another program may write to the file at any time.
    """
    try:
        image = Image.open(path, copy=True)
        image.verify()
    except Error as error:
        raise BadInputError(str(error)) from error
    return image


# ---- one state ----------------------------------------------------------------------------------

_IMAGE_COLUMNS = columns(
    "file cluster_id taken:time brokers:integer topics:integer partitions:integer"
)


def _summary(image: Image) -> dict[str, Any]:
    stats = image.stats()
    return {
        "cluster_id": image.cluster_id,
        "taken": image.taken,
        "brokers": len(image.brokers),
        "topics": stats["topics"],
        "partitions": stats["partitions"],
    }


def _print_image(output: Output, action: str, path: str, image: Image) -> None:
    found = {"file": path, **_summary(image)}
    head = {"version": 1, "command": "image", "action": action}
    row = [found[each.name] for each in _IMAGE_COLUMNS]
    output.answer({**head, **found}, Table(_IMAGE_COLUMNS, [row]))


# ---- changes ------------------------------------------------------------------------------------

_CHANGE_COLUMNS = columns("topic partition:integer kind old new")


def _change_rows(changes: Changes) -> Iterator[Row]:
    """Yields a row for each change; its time says nothing, as it is that of the later image."""
    for change in changes:
        yield change_row(change, old_and_new(change))[1:]


def _diff_json(before: Image, after: Image, changes: Changes) -> Iterator[str]:
    """Yields the one object in pieces: one for each change."""
    states = f'"before":{json_text(_summary(before))},"after":{json_text(_summary(after))}'
    yield f'{{"version":1,"command":"image","action":"diff",{states},"changes":['
    for number, change in enumerate(changes):
        found = change_object(change, old_and_new(change))
        del found["time"]
        yield f"{',' if number else ''}{json_text(found)}"
    yield "]}"
