"""Writes the rows of a run as a page with bars, and as a table for docs/performance.md."""

from __future__ import annotations

import io
import math
import re
import zlib
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2

from bench.results import Row, digits

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, OTHERS, FLOOR = "#d9480f", "#8fa3b8", "#d3d9de"
INK, QUIET = "#212529", "#6c757d"

GROUPS = (
    (
        "peers lookup",
        "Leader of a partition",
        "All get the same queries: a topic's name, or its handle, and a partition. The result is"
        " the leader's id.",
    ),
    (
        "peers fill",
        "A Metadata response into an empty cache",
        "From the bytes of a response about all topics, 10 partitions each, 3 replicas.",
    ),
    (
        "peers again",
        "The same response again",
        "The cost of a periodic refresh without changes, which is nearly every one.",
    ),
    ("peers memory", "Memory", "The growth of a process that has the cache."),
)


def scaled(row: Row) -> tuple[float, str]:
    """Returns the divisor of a row's amounts, and the unit that they then have."""
    amount, unit = float(row["value"]), str(row["unit"]).removesuffix("/partition")
    if unit == "ns" and amount >= 1e6:
        return 1e6, "ms"
    if unit == "ns" and amount >= 1e4:
        return 1e3, "\N{GREEK SMALL LETTER MU}s"
    return 1.0, unit


def value(row: Row) -> str:
    """Returns a median with its unit, as a person writes it: 12.1 ns, 13.5 us."""
    by, unit = scaled(row)
    return f"{digits(float(row['value']) / by)} {unit}"


def spread(row: Row) -> str:
    """Returns "best to worst", in the unit of the value."""
    by, _ = scaled(row)
    return f"{digits(float(row['best']) / by)} to {digits(float(row['worst']) / by)}"


def times(row: Row) -> str:
    """Returns how many times rdmeta's row it is; nothing for that row."""
    if row["label"] == row["reference_name"] or row["ratio"] is None:
        return ""
    return f"\N{MULTIPLICATION SIGN}{plain(float(row['ratio']))}"


def slug(row: Row) -> str:
    """Returns the id of a row's bar in the page."""
    return "bar-" + re.sub(r"[^a-z0-9]+", "-", str(row["name"]).lower()).strip("-")


def versioned(row: Row) -> str:
    """Returns a label with the version that was measured."""
    label, peer = str(row["label"]), str(row["peer"])
    if row["ours"] or peer in ("rdmeta", "dict"):
        return label
    first, comma, rest = label.partition(",")
    return f"{first} {row['version']}{comma}{rest}"


# ------------------------------------------------------------------ the page


def bars(rows: Sequence[Row]) -> str:
    """Returns one chart as SVG: a bar per row on a log scale, with its spread as a line."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "r"}):
        height = 0.56 + 0.34 * len(rows)
        figure = Figure(figsize=(8.8, height))
        axes = figure.add_axes((0.37, 0.42 / height, 0.34, 1 - 0.54 / height))
        scale(axes, rows)
        place = axes.get_yaxis_transform()
        for y, row in enumerate(rows):
            color = OURS if row["ours"] else FLOOR if row["floor"] else OTHERS
            (bar,) = axes.barh(y, float(row["value"]), height=0.68, color=color)
            bar.set_gid(slug(row))
            ends = (float(row["best"]), float(row["worst"]))
            axes.plot(ends, (y, y), color=INK, linewidth=1.1, solid_capstyle="butt")
            weight = "bold" if row["ours"] else "normal"
            for x, side, text, size, ink in (
                (-0.02, "right", versioned(row), 9.5, INK),
                (1.20, "right", value(row), 9.5, INK),
                (1.41, "right", times(row), 9.5, INK),
                (1.45, "left", spread(row), 8.5, QUIET),
            ):
                axes.text(
                    x, y, text, ha=side, va="center", fontsize=size, color=ink,
                    fontweight=weight if ink == INK else "normal", transform=place,
                )  # fmt: skip
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    svg = out.getvalue()
    return own_ids(svg[svg.index("<svg") :], f"c{zlib.crc32(slug(rows[0]).encode()):x}-")


def own_ids(svg: str, prefix: str) -> str:
    """Returns a chart whose ids are unique in a page of many; a bar's id already is."""
    return re.sub(r'(\bid="|\bhref="#|\burl\(#)(?!bar-)', rf"\g<1>{prefix}", svg)


def scale(axes: Axes, rows: Sequence[Row]) -> None:
    """Sets a log scale from a power of ten below every bar, without decoration."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low = min(max(float(row["best"]), 1.0) for row in rows)  # at least 1
    high = max(float(row["worst"]) for row in rows)
    axes.set_xscale("log")
    axes.set_xlim(10 ** math.floor(math.log10(low)), max(high, low) * 1.3)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.xaxis.set_major_locator(LogLocator(10, numticks=10))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: plain(x)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks([])
    axes.tick_params(colors=QUIET, labelsize=8.5)
    axes.grid(axis="x", color="#e9ecef", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#ced4da")


def charts(rows: Sequence[Row], group: str) -> list[dict[str, Any]]:
    """Returns the charts of a group: native and Python ones of each size."""
    out = []
    own = [row for row in rows if row["group"] == group]
    titles = list(dict.fromkeys(str(row["figure"]) for row in own))
    own.sort(key=lambda row: titles.index(str(row["figure"])))
    for title, of in groupby(own, key=lambda row: str(row["figure"])):
        members = sorted(of, key=lambda row: (float(row["value"]), str(row["label"])))
        parts = [members] if group != "peers lookup" else [
            [row for row in members if row["layer"] == layer] for layer in ("native", "Python")
        ]  # fmt: skip
        for part in filter(None, parts):
            layer = {"native": "from C, Java and Go", "Python": "from Python"}[part[0]["layer"]]
            name = title if len(parts) == 1 else f"{title}, {layer}"
            out.append({"title": name, "unit": part[0]["unit"], "svg": bars(part)})
    return out


def page(rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    """Returns one HTML page that needs no other file."""
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    groups = [
        {"title": title, "text": text, "charts": charts(rows, group)}
        for group, title, text in GROUPS
    ]
    return environment.get_template("report.html.j2").render(groups=groups, about=about)


# ----------------------------------------------------------------- the table

COLUMNS = (
    ("lookup, 1 k topics", "leader lookup, random of 1 k topics"),
    ("10 k", "leader lookup, random of 10 k topics"),
    ("100 k", "leader lookup, random of 100 k topics"),
    ("8 hot", "leader lookup, 8 hot of 10 k topics"),
    ("answer, 100 k partitions", "response -> empty cache, 100 k partitions"),
    ("same again", "same response again, 100 k partitions"),
    ("memory", "memory of a cache of 100 k partitions"),
)
# Per peer: its title, its name, the label of its lookups and of its answers.
TABLE: tuple[tuple[str, str, str | None, str | None], ...] = (
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


def plain(amount: float) -> str:
    """Writes a number with three digits, and a space between thousands."""
    return digits(amount) if amount < 1000 else f"{float(f'{amount:.3g}'):,.0f}".replace(",", " ")


def markdown(rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    """Returns the table of docs/performance.md: medians, with the missing peers below."""
    cells = {(row["peer"], row["label"], row["figure"]): float(row["value"]) for row in rows}
    lines = ["| | " + " | ".join(title for title, _ in COLUMNS) + " |", "|---" * 8 + "|"]
    for title, peer, lookup, answer in TABLE:
        if peer not in about["versions"]:
            continue
        found = [
            cells.get((peer, lookup if "lookup" in figure else answer, figure))
            for _, figure in COLUMNS
        ]
        texts = ["-" if amount is None else plain(amount) for amount in found]
        lines.append(f"| {title.format(about['versions'][peer])} | {' | '.join(texts)} |")
    host = about["machine"]
    lines += [
        "",
        "Medians; lookups in ns, answers in ns per partition, memory in bytes per partition.",
    ]
    lines[-1] += f" {host['cpu']}, {host['cores']} cores, Python {host['python']}."
    lines += [f"Missing: {name} ({reason})." for name, reason in about["missing"].items()]
    return "\n".join(lines)
