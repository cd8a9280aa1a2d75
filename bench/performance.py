"""Writes performance.md and scale.md of docs/internals/, and the README's figures.

They are made of bench/results.json by `make bench`, `make bench-peers`, and by
`python -m bench.performance`, which measures nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from bench import scale
from bench.build import ROOT
from bench.results import RESULTS, Row, commit_of, digits, load

PAGE = ROOT / "docs/internals/performance.md"
README = ROOT / "README.md"

GROUPS = {
    "lookup": "Leader lookups by name, in C",
    "handle": "Leader lookups by handle",
    "bulk": "Many leaders in one call",
    "python": "Leader lookups by name, in Python",
    "threads": "Several threads",
    "apply": "A Metadata response, in C",
    "first": "The first response of a fresh process",
    "memory": "Memory",
    "churn": "Memory after many changes",
    "image": "Images",
    "waits": "From a change to the program that waits for it",
    "arrow": "Arrow",
    "client": "The client",
    "security": "The client on secured clusters",
    "cli": "The command, and metrics",
    "fold": "Changes to intervals",
    "log": "Metadata logs",
    "report": "The report",
    "spark": "The pipeline on Spark",
    "import": "Import",
}

HEAD = """\
# Performance

<!-- `make bench` writes this page from bench/results.json: do not edit it. -->

`make bench` times every figure beside a floor, in one process and by turns, so that a slow moment
of the machine hits both. A time depends on the machine; its *ratio* to the floor hardly does. So a
goal is a ratio, or a number of bytes. Rows without a goal are information. A row that misses its
goal is measured up to twice more before it is called missed, or once more if that takes more than
20 s.

Values are medians over all rounds. A ratio is the median of each round's own ratio. Where it is
marked with a `*`, it differs by more than 2 % from the quotient of the two medians beside it: the
machine was slower in some rounds than in others, and the ratio is the figure to trust.

Responses are Metadata v12 with 10 partitions per topic and 3 replicas. The client is measured
beside other clients too, and its leaders are killed on Apache Kafka; `bench/client` says how. Times
of the command are those of whole processes; `bench/cli` says how.
"""

PEERS = """\
## Other clients

`make bench-peers` times other clients beside the cache in one run.
[How each is measured, and what cannot be compared](../../bench/peers/README.md). These rows have no
goals.
"""

PEER_COLUMNS = (
    ("lookup, 1 k topics", "leader lookup, random of 1 k topics"),
    ("10 k", "leader lookup, random of 10 k topics"),
    ("100 k", "leader lookup, random of 100 k topics"),
    ("8 hot", "leader lookup, 8 hot of 10 k topics"),
    ("answer, 100 k partitions", "response -> empty cache, 100 k partitions"),
    ("same again", "same response again, 100 k partitions"),
    ("memory", "memory of a cache of 100 k partitions"),
)
# Per peer: its title, its name, the label of its lookups and of its answers.
PEER_ROWS: tuple[tuple[str, str, str | None, str | None], ...] = (
    ("**rdmeta, C**", "rdmeta", "rdmeta, C", "rdmeta, C"),
    ("**rdmeta, C, by handle**", "rdmeta", "rdmeta, C, by handle", None),
    ("librdkafka {}, its read lock taken", "librdkafka", "librdkafka, read lock", "librdkafka"),
    (
        "Java, kafka-clients {}, String hashed",
        "kafka-clients",
        "Java client, String hashed",
        "Java client",
    ),
    ("Go {} map, no rules", "go", "Go map, no rules", None),
    ("**rdmeta, Python**", "rdmeta (Python)", "rdmeta, cache.leader", "rdmeta, Python"),
    ("**rdmeta, Python, by handle**", "rdmeta (Python)", "rdmeta, by handle", None),
    ("kafka-python {}", "kafka-python", "kafka-python", "kafka-python"),
    ("aiokafka {}", "aiokafka", "aiokafka", "aiokafka"),
    (
        "confluent-kafka {}, `list_topics`",
        "confluent-kafka",
        "confluent-kafka, list_topics(topic)",
        "confluent-kafka, list_topics()",
    ),
    ("dict of lists, no rules", "dict", "dict of lists, no rules", None),
)

# How far a ratio may be from the quotient of its two medians without a mark: they are rounded.
ROUNDED = 0.02

# The figures of the README: a row's name, the figure in words, its reference in words, and the row
# that is the reference, where that is another one.
CHOSEN: tuple[tuple[str, str, str, str | None], ...] = (
    (
        "C leader lookup, random of 10 k topics",
        "a leader lookup in C, random of 10 000 topics",
        "a bare hash table without rules",
        None,
    ),
    (
        "Python cache.leader, 8 hot of 10 k topics",
        "`cache.leader(topic, partition)` in Python, 8 hot topics of 10 000",
        "**faster:** a dict of lists without rules",
        "Python dict of lists, 8 hot of 10 k topics",
    ),
    (
        "Python t.leader(p), no-op of its own",
        "the same by handle, `orders.leader(3)`",
        "the same method doing nothing",
        None,
    ),
    (
        "C same response again, same order, 1 M partitions",
        "a refresh that brings nothing new, for each of 1 000 000 partitions",
        "copying its bytes",
        None,
    ),
    (
        "memory by RSS, ids <= 32767, 1 M partitions",
        "memory for each of 1 000 000 partitions",
        "the response's bytes",
        None,
    ),
    (
        "open a saved image of 1 M partitions, with a lookup",
        "a saved image of 1 000 000 partitions opened, with a first lookup",
        "saving it",
        None,
    ),
)


def unit(row: Row) -> str:
    """Returns the unit of one value, without what it counts by."""
    return str(row["unit"]).removesuffix("/partition").removesuffix("/row")


def number(row: Row, key: str) -> str:
    """Returns a value of a row as a person writes it."""
    return digits(float(row[key]))


def line(cells: Iterable[str]) -> str:
    """Returns a row of a table."""
    return f"| {' | '.join(cells)} |"


# ---- the page -----------------------------------------------------------------------------------


def goal(row: Row) -> str:
    """Returns the last cell: the goal, and whether it was met."""
    if row["rule"] is None:
        return ""
    marks = {True: "met", False: "**missed**", None: "not judged"}
    rule = str(row["rule"]).removesuffix(f" {row['unit']}")
    return f"{rule}: {marks[row['ok']]}"


def ratio(row: Row) -> str:
    """Returns the ratio, with a * where it is not the quotient of the two medians beside it."""
    found, reference = row["ratio"], row["reference"]
    if found is None or not reference:
        return digits(found)
    is_quotient = abs(found - row["value"] / reference) <= max(0.001, ROUNDED * found)
    return digits(found) + ("" if is_quotient else " *")


def table(rows: Sequence[Row]) -> list[str]:
    """Returns the table of a group."""
    out = [
        line(("figure", "median", "best to worst", "unit", "beside it", "ratio", "goal")),
        line(("---", "---:", "---:", "---", "---", "---:", "---")),
    ]
    out += [
        line(
            (
                str(row["name"]),
                number(row, "value"),
                f"{number(row, 'best')} to {number(row, 'worst')}",
                str(row["unit"]),
                f"{row['reference_name']}: {number(row, 'reference')}",
                ratio(row),
                goal(row),
            )
        )
        for row in rows
    ]
    return out


def missed(rows: Sequence[Row]) -> list[str]:
    """Returns each missed goal once, as a ratio to its reference, and why it is missed if known."""
    out = [
        f"- {row['name']}: {ratio(row)} times {row['reference_name']}"
        f" ({number(row, 'value')} and {number(row, 'reference')} {row['unit']});"
        f" the goal is {row['rule']}. {row.get('why', '')}".rstrip()
        for row in rows
        if row["ok"] is False
    ]
    return out or ["No goal is missed."]


def unmeasured(about: Mapping[str, Any]) -> list[str]:
    """Returns the rows that could not be measured on the machine of the runs, with the reasons."""
    missing: Mapping[str, str] = about.get("missing") or {}
    if not missing:
        return []
    rows = [f"- {name}: {reason}" for name, reason in missing.items()]
    return ["## Rows that could not be measured", "", *rows, ""]


def signatures(rows: Sequence[Row]) -> list[str]:
    """Returns a line for each commit, day and machine."""

    def run(row: Row) -> tuple[str, str, str]:
        return str(row["measured_at"])[:10], commit_of(row), str(row["machine"])

    out = []
    for (when, commit, where), of in groupby(sorted(rows, key=run), key=run):
        out.append(f"- {len(list(of))} rows: commit {commit}, {when}, {where}")
    return out


def machine(about: Mapping[str, Any]) -> str:
    """Returns a line about the machine of the last run."""
    caches = f"caches {about['cache_l2']} (L2) and {about['cache_l3']} (L3)"
    kind = "virtual, " if about["hypervisor"] else ""
    return (
        f"The last run: {about['cpu']}, {kind}{about['cores']} cores, {caches};"
        f" {about['compiler']}; Python {about['python']}; load {about['load'][0]} before it."
    )


def page(rows: Sequence[Row], about: Mapping[str, Any], peers: Mapping[str, Any]) -> str:
    """Returns docs/internals/performance.md."""
    own = [row for row in rows if row["run"] == "bench"]
    theirs = [row for row in rows if row["run"] == "peers"]
    out = [HEAD, *signatures(own), "", machine(about), "", "## Missed goals", "", *missed(own), ""]
    out += unmeasured(about)
    groups = dict.fromkeys([*GROUPS, *(str(row["group"]) for row in own)])
    for group in groups:
        of = [row for row in own if row["group"] == group]
        if of:
            out += [f"## {GROUPS.get(group, group)}", "", *table(of), ""]
    out += [PEERS, *signatures(theirs), "", peers_table(theirs, peers)]
    return "\n".join(out) + "\n"


def plain(amount: float) -> str:
    """Writes a number with three digits, and a space between thousands."""
    return digits(amount) if amount < 1000 else f"{float(f'{amount:.3g}'):,.0f}".replace(",", " ")


def peers_table(rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    """Returns the table of the other clients: medians, with the missing ones below."""
    cells = {(row["peer"], row["label"], row["figure"]): float(row["value"]) for row in rows}
    lines = ["| | " + " | ".join(title for title, _ in PEER_COLUMNS) + " |", "|---" * 8 + "|"]
    for title, peer, lookup, answer in PEER_ROWS:
        if peer not in about["versions"]:
            continue
        found = [
            cells.get((peer, lookup if "lookup" in figure else answer, figure))
            for _, figure in PEER_COLUMNS
        ]
        texts = ["-" if amount is None else plain(amount) for amount in found]
        lines.append(f"| {title.format(about['versions'][peer])} | {' | '.join(texts)} |")
    host = about["machine"]
    units = "Medians; lookups in ns, answers in ns per partition, memory in bytes per partition."
    lines += ["", f"{units} {host['cpu']}, {host['cores']} cores, Python {host['python']}."]
    lines += [f"Missing: {name} ({reason})." for name, reason in about["missing"].items()]
    return "\n".join(lines)


# ---- the README ---------------------------------------------------------------------------------


def between(text: str, mark: str, content: str) -> str:
    """Returns `text` with `content` between the two comments of that name; ValueError: none."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"no {begin.strip()} ... {end}")
    return f"{before}{begin}{content}\n{end}{after}"


def readme(text: str, rows: Sequence[Row]) -> str:
    """Returns the README with the figures of these rows."""
    named = {str(row["name"]): row for row in rows if row["run"] == "bench"}
    chosen = [
        (
            named[name],
            figure,
            words,
            named[name]["reference"] if beside is None else named[beside]["value"],
        )
        for name, figure, words, beside in CHOSEN
    ]
    out = [line(("figure", "measured", "beside it in the same run")), line(["---"] * 3)]
    out += [
        line(
            (
                figure,
                f"{number(row, 'value')} {unit(row)}",
                f"{words}: {digits(float(beside))} {unit(row)}",
            )
        )
        for row, figure, words, beside in chosen
    ]
    return between(text, "figures", "\n".join(out))


def about(path: Path) -> dict[str, Any]:
    """Returns the description of the last run of a program."""
    described: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return described


def made() -> dict[Path, str]:
    """Returns the three documents as they follow from bench/results.json."""
    rows = load(RESULTS)
    machine, peers = (about(RESULTS.with_suffix(f".{name}.json")) for name in ("machine", "peers"))
    return {
        PAGE: page(rows, machine, peers),
        scale.PAGE: scale.page(rows),
        README: readme(README.read_text(encoding="utf-8"), rows),
    }


def write() -> None:
    """Writes the documents."""
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
