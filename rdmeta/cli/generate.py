"""`rdmeta generate`: recordings and logs of clusters whose truth is known."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path

import click

from rdmeta.cli.messages import FINE, BadInputError
from rdmeta.cli.output import json_text

_SCENARIOS = ("quiet", "bad-friday", "before-after", "dirty")
_COUNT = click.IntRange(1, 10_000)


def _begin(context: click.Context, option: click.Parameter, value: str | None) -> datetime | None:
    if value is None:
        return None
    with suppress(ValueError):
        found = datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=timezone.utc)
        if 1970 <= found.year < 2900:  # with the most days it ends in a year of four digits
            return found
    raise click.UsageError("--begin needs a day such as 2026-11-22", context)


@click.command(
    epilog="""\b
Examples:
  rdmeta generate bad-friday made
  rdmeta generate quiet made-2 --seed 7 --begin 2026-11-02 --clusters 2
"""
)
@click.argument("scenario", type=click.Choice(_SCENARIOS), metavar="SCENARIO")
@click.argument("out", metavar="OUT")
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed, other details.")
@click.option(
    "--begin",
    metavar="DAY",
    callback=_begin,
    help="The first day, in UTC.  [default: so that the last day is yesterday]",
)
@click.option("--days", type=_COUNT, help="How many days.  [default: the scenario's]")
@click.option("--clusters", type=_COUNT, default=3, show_default=True, help="How many clusters.")
@click.option(
    "--brokers",
    type=click.IntRange(3, 1000),
    default=6,
    show_default=True,
    help="How many brokers each cluster has, on three racks.",
)
@click.option("--topics", type=_COUNT, default=8, show_default=True, help="Topics per cluster.")
@click.option(
    "--partitions", type=_COUNT, default=6, show_default=True, help="Partitions per topic."
)
@click.option("--json", "json", is_flag=True, help="Print what truth.json says.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
def command(
    scenario: str,
    out: str,
    seed: int,
    begin: datetime | None,
    days: int | None,
    clusters: int,
    brokers: int,
    topics: int,
    partitions: int,
    json: bool,
    quiet: bool,
) -> int:
    """Writes what recorders and controllers of made-up clusters tell, and what was true.

    \b
    OUT/history     recordings, as rdmeta record makes them
    OUT/logs        metadata logs of three controllers for each cluster
    OUT/truth.json  each event: begin, end, cluster, kind, brokers, topics

    \b
    quiet         a week with one rolling restart
    bad-friday    a week with lost brokers, an unclean election, a rebalance and a hole
    before-after  two weeks: skewed leaders, and then a rebalance
    dirty         four days of recorders and logs that disagree or are damaged

    The same options, --begin among them, always give the same files, byte for byte.
    """
    from rdmeta.generate import scenarios

    length = days or scenarios.SCENARIOS[scenario].days
    today = datetime.now(timezone.utc).replace(hour=0, minute=0, second=0, microsecond=0)
    first = begin or today - timedelta(days=length)
    sizes = scenarios.Sizes(length, clusters, brokers, topics, partitions)
    folder = _empty(out)
    logging.getLogger("rdmeta.history").addHandler(logging.NullHandler())  # holes are wanted
    truth = scenarios.write(scenario, seed, first, sizes, folder)
    if json:
        click.echo(json_text({"version": 1, "command": "generate", "path": out, **truth}))
    elif not quiet:
        when = f"{length} days from {first:%Y-%m-%d}"
        click.echo(f"{out}: {clusters} clusters, {when}, {len(truth['events'])} events")
    return FINE


def _empty(out: str) -> Path:
    """Returns the folder to write to, and makes it; it may not have anything in it."""
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.listdir(folder):
            raise BadInputError(f"{out} is not empty: name a new folder")
    except OSError as error:
        raise BadInputError(f"cannot write to {out!r}: {error.strerror}") from None
    return folder
