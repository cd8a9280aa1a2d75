"""Writes docs/cli.md, the page of the command, from its helps and the table of bad inputs.

    python tools/cli_docs.py          # updates the page
    python tools/cli_docs.py --check  # writes nothing; exits with 1 if the page is behind

The helps come from rdmeta/cli, the bad inputs from tests/cli/bad_inputs.txt.
"""

from __future__ import annotations

import argparse
import sys

import click
from generated import ROOT, bring_up_to_date

sys.path[:0] = [str(ROOT), str(ROOT / "tests/support")]

from bad_inputs import SHOWN, bad_inputs  # noqa: E402

from rdmeta.cli.app import COMMANDS, group  # noqa: E402

PAGE = ROOT / "docs/cli.md"

HEAD = """\
# The command rdmeta

<!-- `tools/cli_docs.py` writes this page: do not edit it. -->

`pip install 'rdmeta[cli]'` installs the command. `--parquet` and `rdmeta record` also need the
extra `arrow`, `rdmeta pipeline` needs `pipeline`, `--metrics` needs `metrics`, and
`rdmeta embedded` needs `kafka` and `cffi`. `rdmeta pipeline --engine spark` needs `spark` and Java
instead; on a Spark Connect server, `--master sc://HOST:PORT`, it needs `connect` and no Java.

| command | what it does |
|---|---|
"""

TEXT = """
## Which cluster

`-b HOST[:PORT],...` names servers to ask first. All options of the client count
([options.md](options.md)), with TLS and SASL ([security.md](security.md)). Later ones of this list
win:

1. The environment: `RDMETA_BOOTSTRAP`, and `RDMETA_` with the option's name in capitals, with `_`
   for each dot: `RDMETA_SASL_PASSWORD` is `sasl.password`.
2. The section of the clusters file that `-c` names.
3. `-F client.properties`: a file of lines `key=value`.
4. `-b`.
5. `-X key=value`.

Arguments show in `ps`, so give secrets in a file or in the environment. With `-c`, the section
alone names servers: they are refused in `-F`, `-b` and `-X`.

No command creates a topic: `allow.auto.create.topics` has no effect.

`-c NAME[,NAME]` or `-c all` asks several clusters side by side. The file is `RDMETA_CLUSTERS`, else
`~/.config/rdmeta/clusters.ini`:

```ini
[production]
bootstrap.servers = kafka-1:9093,kafka-2:9093
security.protocol = sasl_ssl
sasl.mechanism = SCRAM-SHA-512
sasl.username = alice
sasl.password = secret

[testing]
bootstrap.servers = localhost:9092
```

The output then has a column `cluster`. A cluster that fails is one line on stderr, and the others
go on. The highest exit code counts. If other users can read the file, and it has a secret, the
command warns.

## Output

On a terminal the columns of a table stand below each other. In a pipe there are tabs between them.
No cell is shortened and no line is wrapped. The first line names the columns; an empty line
separates two tables. `-` stands for what is absent. A character that does not print is shown as an
escape, such as `\\x1b`, and so is one that the locale lacks.

`--json` prints one object. [output.schema.json](../rdmeta/cli/output.schema.json) is its schema;
`version` changes when the meaning of a field does. Absent values are `null`. `--csv` and
`--parquet FILE` hold one table. A spreadsheet runs a cell that begins with `=`, `+`, `-` or `@`, or
with a wide form of one, as a formula, and names of topics, hosts and racks come from others. So
`--csv` puts a `'` before such a text, but not before a number. `--csv-raw` leaves each text as it
is, for programs. Times are RFC 3339 in UTC.

Errors, warnings and the client's log go to stderr, each as one line. `-v` adds causes and the log,
`-vv` all of the log; `-q` leaves only errors.

| exit code | meaning |
|---|---|
| 0 | all is well; also where a reader closed the pipe |
| 1 | a condition is not met: a topic is unknown, `--fail` found something |
| 2 | the command line, a configuration or a file is wrong |
| 3 | no usable answer from a cluster; a wrong password, too |
| 130 | Ctrl-C |

SIGTERM ends a command as it ends other programs, after its files are closed: a shell shows 143.

"""

BAD = """
## Bad inputs

Each of these prints one line on stderr. `kafka:9092` is a cluster, `kafka:9093` one with SASL.
Nothing listens at `kafka:9999`, and `10.0.0.9:9092` does not answer.

| command | what it prints | exit code |
|---|---|---|
"""

ENDS = """
## How else a run ends

| what happens | what the command does | exit code |
|---|---|---|
| the extra is missing | `rdmeta: the command needs the extra cli: pip install 'rdmeta[cli]'` | 2 |
| the reader closes the pipe: `rdmeta list \\| head -1` | it ends without a word | 0 |
| the disk is full | `rdmeta: No space left on device` | 2 |
| stdout is closed: `rdmeta list >&-` | `rdmeta: stdout is closed` | 2 |
| Ctrl-C | it ends without a word | 130 |
| SIGTERM | it ends without a word, by the signal | |
| the terminal is resized | it goes on | 0 |
| the locale lacks a character | the character is an escape: `caf\\xe9` | 0 |
| a topic's name has odd bytes | each is an escape: `\\udcff\\x1b[2J`; in JSON, too | 0 |
"""


def help_of(name: str) -> str:
    """Returns the help of a command as the section of the page."""
    parent = click.Context(group, info_name="rdmeta", terminal_width=98)
    command = group.get_command(parent, name)
    assert command is not None
    context = click.Context(command, parent, name, help_option_names=["-h", "--help"])
    return f"## rdmeta {name}\n\n```text\n{command.get_help(context)}\n```\n"


def cell(text: str) -> str:
    """Returns a text as code in a cell of a table."""
    return f"`{text}`".replace("|", "\\|")


def page() -> str:
    """Returns the text of the page."""
    commands = "".join(f"| [`{each}`](#rdmeta-{each}) | {COMMANDS[each]} |\n" for each in COMMANDS)
    helps = "\n".join(map(help_of, COMMANDS))
    rows = [each.filled(SHOWN) for each in bad_inputs()]
    table = "".join(f"| {cell(row.line)} | {cell(row.text)} | {row.code} |\n" for row in rows)
    return "".join([HEAD, commands, TEXT, helps, BAD, table, ENDS])


def main() -> int:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="writes nothing")
    return bring_up_to_date({PAGE: page()}, parser.parse_args().check)


if __name__ == "__main__":
    sys.exit(main())
