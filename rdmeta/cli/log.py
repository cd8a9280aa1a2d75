"""`rdmeta log`: the metadata log of KRaft in files, read, replayed and asked."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from rdmeta.cli.log_opening import LogRequest
from rdmeta.cli.log_options import at_option, point_option, proven_option
from rdmeta.cli.messages import BadInputError, Messages
from rdmeta.cli.output import Output
from rdmeta.cli.shared_options import output_options
from rdmeta.kraft import KraftError

_ID = click.IntRange(0, (1 << 31) - 1)
_STATE = ("at", "proven", "skip_corrupt", "show_secrets")
_CUT = ("since", "until", "topic", "partition", "broker", "proven", "skip_corrupt", "show_secrets")
# Each word, the module of this package that answers it, and the options that it takes.
_WORDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "info": ("log_info", ("skip_corrupt",)),
    "dump": ("log_dump", (*_CUT, "types", "batches")),
    "ls": ("log_tree", _STATE),
    "cat": ("log_tree", _STATE),
    "tree": ("log_tree", _STATE),
    "find": ("log_tree", _STATE),
    "changes": ("log_changes", (*_CUT, "recordings", "listener")),
    "explain": ("log_explain", ("topic", "partition", "broker", "proven", "skip_corrupt")),
    "diff": ("log_diff", _STATE),
    "check": ("log_check", ()),
}


@click.command(
    epilog="""\b
Examples:
  rdmeta log info /var/kafka/metadata
  rdmeta log explain /var/kafka/metadata orders/3
"""
)
@click.argument("word", type=click.Choice(list(_WORDS)), metavar="WORD")
@click.argument("arguments", nargs=-1, required=True, metavar="PATH...")
@at_option
@point_option("--since", "Nothing before this offset or time.")
@point_option("--until", "Nothing from this offset or time on.")
@click.option(
    "--type",
    "types",
    metavar="NAME",
    multiple=True,
    help="dump: only records of this type, such as TOPIC_RECORD. May be repeated.",
)
@click.option("--topic", metavar="NAME", help="Only what is about this topic.")
@click.option("--partition", metavar="N", type=_ID, help="Only this partition.")
@click.option("--broker", metavar="ID", type=_ID, help="Only what is about this broker.")
@click.option("--batches", is_flag=True, help="dump: a row for each batch, not for each record.")
@click.option(
    "--recordings", metavar="DIR", help="changes: write recordings there, one for each UTC day."
)
@click.option("--listener", metavar="NAME", help="The listener whose endpoints brokers have.")
@proven_option
@click.option("--skip-corrupt", is_flag=True, help="Go on behind a batch that is corrupt.")
@click.option("--show-secrets", is_flag=True, help="Show what is *** otherwise.")
@click.option("-q", "quiet", is_flag=True, help="Print errors only, and no warnings.")
@output_options
@click.pass_obj
def command(
    messages: Messages,
    /,
    output: Output,
    word: str,
    arguments: tuple[str, ...],
    quiet: bool,
    **options: Any,
) -> int:
    """Read the metadata log of KRaft: who led, what shrank an ISR, what was true at a moment.

    \b
    info PATH...      files, times, what is proven, voters, leaders of each epoch.
    dump PATH...      records, with names of topics; --json prints a line for each.
    ls PATH... [/image/...]     the state as a tree, as in Kafka's own shell;
    cat, tree, find             cat is JSON with the record that made it so.
    changes PATH...   what changed, as rdmeta watch shows it, with offsets.
    explain PATH... TOPIC[/P]   each leader, ISR, ELR and reassignment in turn,
                      and its cause; with --broker ID its registrations.
    diff PATH A B     two points of a log; diff PATH PATH: two logs; exit code 1
                      if they differ.
    check PATH...     CRCs, snapshots, notes and copies; exit code 1 for a
                      serious finding.

    PATH is a log directory, the one that has it, a segment, a snapshot, or directories of several
    nodes. A node may be writing: no lock is taken, and nothing is written. What is not proven to
    be committed is marked so. Secrets are *** without --show-secrets.
    """
    messages.level = -1 if quiet else 0
    module, taken = _WORDS[word]
    for parameter in click.get_current_context().command.params:
        value = options.get(parameter.name or "")
        is_given = value is not None and value is not False and value != ()
        if is_given and parameter.name not in taken:
            raise BadInputError(f"log {word} takes no {parameter.opts[-1]}")
    if options["show_secrets"]:
        messages.fault("secrets are shown: --show-secrets was given")
    request = LogRequest(word, list(arguments), output, messages, **options)
    try:
        return int(import_module(f"rdmeta.cli.{module}").answer(request))
    except KraftError as error:
        raise BadInputError(str(error)) from error
