"""Bad inputs of the command, with the line that each prints: tests/cli/bad_inputs.txt.

tests/cli/test_bad_inputs.py runs each one; tools/cli_docs.py shows them in commands.md.
Below an exit code are command lines, each with its line on stderr. {server} stands for a cluster,
{secured} for one with SASL; nothing listens at {closed}, {silent} does not answer. {dir} is a
directory with FILES, {log} one with the metadata logs of three controllers.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FILES = {
    "broken.properties": "client.id\n",
    "clusters.ini": "[production]\nbootstrap.servers = {server}\n[empty]\n",
    "noise": "not a state",
}

# What the page shows for the names in braces.
SHOWN = {
    "server": "kafka:9092",
    "secured": "kafka:9093",
    "closed": "kafka:9999",
    "silent": "10.0.0.9:9092",
    "dir": "files",
    "log": "copies",
}


class Bad(NamedTuple):
    """A command line, also with variables before it; the line that it prints; its exit code."""

    line: str
    text: str
    code: int

    def filled(self, values: dict[str, str]) -> Bad:
        """Returns the same with the names in braces replaced."""

        def fill(text: str) -> str:
            return re.sub(r"\{(\w+)\}", lambda name: values[name[1]], text)

        return Bad(fill(self.line), fill(self.text), self.code)


def bad_inputs() -> list[Bad]:
    """Returns what the file lists; raises ValueError for a line that is none of these."""
    text = Path(__file__).parents[1].joinpath("cli/bad_inputs.txt").read_text(encoding="utf-8")
    found, code = [], 0
    lines = iter(text.splitlines())
    for each in lines:
        if each.startswith("$ "):
            found.append(Bad(each.removeprefix("$ "), next(lines), code))
        else:
            code = int(each.strip("[]"))
    return found
