"""Writes docs/reference/commands.md: the helps of the command, and what bad inputs print.

    python tools/cli_docs.py          # updates the page
    python tools/cli_docs.py --check  # writes nothing; exits with 1 if the page is behind

The helps come from rdmeta/cli, the bad inputs from tests/cli/bad_inputs.txt.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Collection

import click
from generated import ROOT, bring_up_to_date

sys.path[:0] = [str(ROOT), str(ROOT / "tests/support")]

from bad_inputs import SHOWN, bad_inputs  # noqa: E402

from rdmeta.cli.app import COMMANDS, group  # noqa: E402

PAGE = ROOT / "docs/reference/commands.md"
# An option of so many commands or more is shown once.
MANY = 4
OPTION = re.compile(r"^  (-.*\n(?:    .*\n)*)", re.MULTILINE)

HEAD = """\
# The command: options and errors

<!-- `tools/cli_docs.py` writes this page: do not edit it. -->

[cli.md](../cli.md) says what each command is for. The help of a command lists all of its options;
here those that several commands share come once,
[further down](#options-of-several-commands).

"""

SHARED = """
## Options of several commands

"""

BAD = """
## Bad inputs

Each of these commands prints one line on stderr. `kafka:9092` is a cluster, `kafka:9093` one with
SASL. Nothing listens at `kafka:9999`, and `10.0.0.9:9092` does not answer.

| command | what it prints | exit code |
|---|---|---|
"""


def help_of(name: str) -> str:
    """Returns the help of a command."""
    parent = click.Context(group, info_name="rdmeta", terminal_width=98)
    command = group.get_command(parent, name)
    assert command is not None
    context = click.Context(command, parent, name, help_option_names=["-h", "--help"])
    return command.get_help(context) + "\n"


def words(option: str) -> str:
    """Returns an option's help on one line; each command has it in another column."""
    return " ".join(option.split())


def section(name: str, text: str, shared: Collection[str]) -> str:
    """Returns the section of a command, with only the names of its shared options."""
    own = OPTION.sub(lambda option: "" if words(option[1]) in shared else option[0], text)
    own = own.replace("Options:\n\n", "")
    names = [re.split(r"[ ,]", each)[0] for each in OPTION.findall(text) if words(each) in shared]
    also = f"And {', '.join(f'`{each}`' for each in names)}."
    return f"## rdmeta {name}\n\n```text\n{own}```\n\n{also}\n"


def cell(text: str) -> str:
    """Returns a text as code in a cell of a table."""
    return f"`{text}`".replace("|", "\\|")


def page() -> str:
    """Returns the text of the page."""
    helps = {name: help_of(name) for name in COMMANDS}
    options = [option for text in helps.values() for option in OPTION.findall(text)]
    count = Counter(map(words, options))
    shared = {words(option): option for option in reversed(options) if count[words(option)] >= MANY}
    sections = "\n".join(section(name, text, shared) for name, text in helps.items())
    once = "".join(f"  {option}" for option in reversed(shared.values()))
    rows = [each.filled(SHOWN) for each in bad_inputs()]
    table = "".join(f"| {cell(row.line)} | {cell(row.text)} | {row.code} |\n" for row in rows)
    return "".join([HEAD, sections, SHARED, f"```text\n{once}```\n", BAD, table])


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="writes nothing")
    return bring_up_to_date({PAGE: page()}, parser.parse_args().check)


if __name__ == "__main__":
    sys.exit(main())
