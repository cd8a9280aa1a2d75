"""The page and the Markdown have each value of the JSON, and names of any kind harm neither."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from written_gold import BEGIN, HOSTILE, covered, random_gold, write_gold

from rdmeta import report
from rdmeta._escaping import escaped
from rdmeta.report.rendering import MOST_CHARACTERS
from rdmeta.report.wording import duration, shown

CLUSTERS = ("one", "two")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> report.Report:
    names = dict(zip(CLUSTERS, HOSTILE, strict=False))
    out = write_gold(tmp_path_factory.mktemp("gold") / "out", random_gold(7), names)
    return report.make(out, since="2026-10-29", until="2026-11-02", compare="2026-10-30")


class _Cells(HTMLParser):
    """The texts of cells, table by table, and all tags with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._is_in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._is_in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._is_in_cell = False

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._is_in_cell:
            self.tables[-1][-1][-1] += data


def parts(model: Any) -> Iterator[Any]:
    return (p for section in model["sections"] for p in section["parts"] if p["rows"])


def cells_of_row(part: Any, row: Any, before: str = " before: {}") -> list[str]:
    """Returns the texts that a row of the JSON has to show; `before` is how an earlier one is."""
    if part["kind"] == "strip":
        sums = [shown(row["total"], "number")] if "total" in row else []
        letters = row.get("letters", " " * len(row["cells"]))
        cells = [
            "not seen" if cell is None else letter.strip() + shown(cell, "number")
            for cell, letter in zip(row["cells"], letters, strict=True)
        ]
        return [escaped(" ".join(row["label"])), *sums, *cells]
    texts = []
    for column in part["columns"]:
        name, kind = column["name"], column["kind"]
        text = shown(row[name], kind)
        if name in row.get("before", {}):
            text += before.format(shown(row["before"][name], kind))
        texts.append(escaped(text))
    return texts


@pytest.mark.slow
def test_the_page_has_each_value_of_the_json_and_no_other(made: report.Report) -> None:
    model, page = json.loads(made.json), _Cells(made.html)
    tables = [part for part in parts(model) if part["kind"] != "list"]
    assert len(page.tables) == len(tables) > 10
    for found, part in zip(page.tables, tables, strict=True):
        assert found[1:] == [cells_of_row(part, row) for row in part["rows"]], part["title"]
    for section in model["sections"]:
        assert escaped(section["sentence"]) in page.text
    for part in parts(model):
        for row in part["rows"] if part["kind"] == "list" else ():
            assert all(escaped(text) in page.text for text in (row["text"], *row["also"]))


@pytest.mark.slow
def test_the_markdown_has_each_value_but_the_numbers_of_bars(made: report.Report) -> None:
    lines = [re.sub(r"\\(.)", r"\1", line) for line in made.markdown.splitlines()]
    for part in parts(json.loads(made.json)):
        for row in part["rows"] if part["kind"] == "table" else ():
            assert f"| {' | '.join(cells_of_row(part, row, ' ({})'))} |" in lines
        for row in part["rows"] if part["kind"] == "strip" else ():
            bars = row["heights"].translate(str.maketrans("-012345678", "░·▁▂▃▄▅▆▇█"))
            letters = f" `{row['letters'].replace(' ', '·')}`" if "letters" in row else ""
            sums = [shown(row["total"], "number")] if "total" in row else []
            cells = [escaped(" ".join(row["label"])), f"`{bars}`{letters}", *sums]
            assert f"| {' | '.join(cells)} |" in lines
        for row in part["rows"] if part["kind"] == "list" else ():
            (line,) = (each for each in lines if each.startswith(f"1. {escaped(row['text'])}"))
            assert all(escaped(text) in line for text in row["also"])


@pytest.mark.slow
def test_nothing_of_a_name_becomes_a_tag_and_the_page_asks_for_nothing(made: report.Report) -> None:
    page = _Cells(made.html)
    assert not {tag for tag, _ in page.tags} & {"script", "img", "link", "iframe", "object"}
    for _, attributes in page.tags:
        assert not any(name.startswith("on") or name == "src" for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    for text in (made.html, made.markdown):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "url(" not in made.html
    assert "default-src 'none'; style-src 'unsafe-inline'" in made.html
    assert re.search(r"(?<!\\)<script", made.markdown) is None


@pytest.mark.slow
def test_equal_gold_gives_equal_bytes_and_a_notebook_a_frame(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_gold(tmp_path / folder / "out", random_gold(3))
    first, second = (report.make(tmp_path / folder / "out") for folder in ("a", "b"))
    assert first.json.replace(str(tmp_path / "a"), str(tmp_path / "b")) == second.json
    again = report.make(tmp_path / "b/out")
    assert (again.html, again.markdown) == (second.html, second.markdown)
    frame = _Cells(again._repr_html_()).tags
    assert [tag for tag, _ in frame] == ["iframe"]
    assert frame[0][1]["srcdoc"] == again.html


@pytest.mark.slow
def test_many_long_names_fit_into_a_comment_and_the_rest_is_counted(tmp_path: Path) -> None:
    rows = {name: found for name, found in random_gold(5).items() if name != "risk_hour"}
    one = next(row for seed in range(9) for row in random_gold(seed)["risk_hour"])
    topics = [f"{each:03d}{'_' * 246}" for each in range(60)]
    at = BEGIN + timedelta(days=2)
    risky = {"leaderless": 9.0, "under_replicated": 9.0, "under_min_isr": 9.0}
    rows["risk_hour"] = [{**one, **risky, "hour": at, "topic": topic} for topic in topics]
    made = report.make(write_gold(tmp_path / "out", rows), since="2026-10-29")
    assert 10_000 < len(made.markdown) <= MOST_CHARACTERS
    found = [p for p in parts(json.loads(made.json)) if p["title"].startswith("Topics without")]
    assert (len(found[0]["rows"]), found[0]["more"]) == (40, 20)
    assert "And 20 more." in made.html
    left = re.findall(r"And (\d+) more\.", made.markdown)
    assert all(int(each) >= 20 for each in left[1:4])


@pytest.mark.slow
def test_a_quiet_fleet_is_told_in_plain_sentences(tmp_path: Path) -> None:
    rows = {"coverage_hour": [*covered("one", 24 * 7), *covered("two", 30)]}
    model = json.loads(report.make(write_gold(tmp_path / "out", rows)).json)
    sentences = {section["name"]: section["sentence"] for section in model["sections"]}
    assert sentences == {
        "fleet": "No cluster had partitions without a leader. No cluster had partitions that missed"
        " a replica. 1 cluster was observed for less than half of the time, and is not ranked.",
        "incidents": "There was no incident: every partition had a leader and all of its replicas.",
        "topics": "No topic was at risk.",
        "brokers": "Nothing is known about brokers.",
        "balance": "It is not known which broker led what.",
        "recovery": "No partition had to recover.",
        "changes": "Nothing was changed.",
        "not_seen": "58.93 % of the time of 2 clusters was observed.",
    }
    one, two = model["sections"][0]["parts"][0]["rows"]
    assert (one["rank"], one["leaderless"], one["unclean"]) == (1, 0, None)
    assert (two["rank"], two["observed"]) == (None, 0.1786)


def test_lengths_of_time_have_their_two_largest_units() -> None:
    texts = [duration(s) for s in (0, 0.25, 9.5, 59.7, 250, 3600, 7380, 90_061, 864_000)]
    assert texts == [
        *("0 s", "0.25 s", "9.5 s", "1 min", "4 min 10 s", "1 h", "2 h 3 min"),
        *("1 d 1 h", "10 d"),
    ]
