"""`rdmeta report`: one page about what happened to a fleet."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from rdmeta._atomic import AtomicFile
from rdmeta.cli.messages import FINE, BadInputError
from rdmeta.cli.output import open_stdout
from rdmeta.cli.pipeline import chosen_clusters, day_option, storage_options, store_options
from rdmeta.cli.shared_options import new_file

_BEFORE = "before"
_FORMS = {"html": "html", "md": "markdown", "json": "json"}


def _compared(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    return value if value == _BEFORE else day_option(context, option, value)


@click.command(
    epilog="""\b
Examples:
  rdmeta report tables -o report.html
  rdmeta report tables --clusters production --compare --format md
"""
)
@click.argument("out", metavar="OUT")
@click.option("-o", "--output", "path", metavar="FILE", help="Write to this file.")
@click.option(
    "--format",
    "form",
    type=click.Choice(tuple(_FORMS)),
    help="html: one file without script; md: Markdown of at most 60 000 characters; json: what both"
    " are made of.  [default: html]",
)
@click.option("--since", metavar="DAY", callback=day_option, help="Begin with this day.")
@click.option("--until", metavar="DAY", callback=day_option, help="End before this day.")
@click.option("--clusters", metavar="ID|NAME,...", help="Show these clusters only.")
@click.option(
    "--compare",
    metavar="[DAY]",
    is_flag=False,
    flag_value=_BEFORE,
    callback=_compared,
    help="Put the numbers of the time before it, or of as many days from DAY on, beside those of"
    " the fleet, of balance and of recovery.",
)
@store_options
def command(
    out: str,
    path: str | None,
    form: str | None,
    since: str | None,
    until: str | None,
    clusters: str | None,
    compare: str | None,
    timeout: float,
    config_file: str | None,
    settings: Sequence[tuple[str, str]],
) -> int:
    """Show on one page what happened to a fleet.

    OUT is a folder that `rdmeta pipeline all` or `gold` made. The page tells which clusters had
    partitions without a leader or without replicas, the gravest incidents, topics, brokers,
    balance, recoveries, changes, and what was not seen. By default it is about the last seven days
    that were observed.
    """
    if since is not None and until is not None and since >= until:
        raise BadInputError(f"--since {since} is not before --until {until}")
    target = None if path is None else new_file(path)
    form = form or "html"
    if target is None and form == "html" and sys.stdout is not None and sys.stdout.isatty():
        raise BadInputError("HTML does not go to a terminal: name a file with -o, or --format md")
    chosen = chosen_clusters(clusters)
    storage = storage_options(config_file, settings)
    from rdmeta import report

    found = report.make(
        out,
        since=since,
        until=until,
        clusters=chosen,
        compare=True if compare == _BEFORE else compare,
        timeout=timeout,
        storage=storage,
    )
    text: str = getattr(found, _FORMS[form])
    text = text if text.endswith("\n") else f"{text}\n"
    if target is None:
        open_stdout().write(text)
        return FINE
    with AtomicFile(target, path or "") as file:
        file.path.write_text(text, encoding="utf-8")
        file.commit()
    return FINE
