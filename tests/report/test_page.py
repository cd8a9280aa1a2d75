"""The page and the Markdown have each value of the JSON, and names of any kind harm neither."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
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
    return report.make(out, since="2026-10-31", until="2026-11-02", compare="2026-10-29")


class _Cells(HTMLParser):
    """The texts of cells, table by table, and all tags with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._is_in_cell, self._is_hidden = False, False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._is_hidden = tag in ("title", "style") or ("aria-hidden", "true") in attrs
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self._is_in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._is_hidden = False
        if tag in ("td", "th"):
            self._is_in_cell = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._is_hidden else f"{data} "
        if self._is_hidden:
            return
        if self._is_in_cell:
            self.tables[-1][-1][-1] += data


def parts(model: Any) -> Iterator[Any]:
    return (p for section in model["sections"] for p in section["parts"] if p["rows"])


def table_rows(part: Any, before: str) -> Iterator[list[str]]:
    """Yields the texts of the cells of a table; `before` is how an earlier number is shown."""
    for row in part["rows"]:
        old, cells = row.get("before", {}), []
        for name, kind in ((column["name"], column["kind"]) for column in part["columns"]):
            text = before.format(shown(old[name], kind)) if name in old else ""
            cells.append(escaped(shown(row[name], kind) + text))
        yield cells


def strip_rows(part: Any) -> Iterator[tuple[Any, list[str], list[str]]]:
    """Yields each row of bars, its label with its sum, and the texts of its cells."""
    for row in part["rows"]:
        for label, each in ((" ".join(reversed(row["label"])), row), ("before", row.get("before"))):
            if each is not None:
                sums = [each["total"]] if "total" in each else []
                cells = [
                    "not seen" if cell is None else shown(cell, "number")
                    for cell in (*sums, *each["cells"])
                ]
                yield each, [escaped(label), *cells[: len(sums)]], cells[len(sums) :]


def texts(model: Any, begins: int) -> Iterator[str]:
    """Yields all texts of the JSON that a page has to show; of a strip so many begins."""
    yield from (*model["days"], *model["days_before"], model["rdmeta"], model["call"])
    yield f"{model['clusters']} {model['gold']}"
    for section in model["sections"]:
        yield from (section["sentence"], section.get("sentence_before", ""))
    for part in parts(model):
        yield f"{part['title']} {part['more'] or ''}"
        if part["kind"] == "table":
            yield from (column["title"] for column in part["columns"])
            yield from (cell for cells in table_rows(part, " {}") for cell in cells)
        elif part["kind"] == "strip":
            yield f"{shown(part['full'], 'number')} {part['unit']} {part['hours']}"
            yield from (shown(begin, "time") for begin in part["begins"][:begins])
            yield from (text for _, *lists in strip_rows(part) for each in lists for text in each)
        else:
            yield from (each for row in part["rows"] for each in (row["text"], *row["also"]))


def numbers(pieces: Iterable[str]) -> Counter[str]:
    return Counter(re.findall(r"\d+(?:\.\d+)?", escaped(" ".join(pieces))))


@pytest.mark.slow
def test_the_page_has_each_value_of_the_json_and_no_other(made: report.Report) -> None:
    model, page = json.loads(made.json), _Cells(made.html)
    tables = [part for part in parts(model) if part["kind"] != "list"]
    assert len(page.tables) == len(tables) > 10
    for (head, *found), part in zip(page.tables, tables, strict=True):
        if part["kind"] == "table":
            assert head == [column["title"] for column in part["columns"]]
            assert found == [*table_rows(part, " before: {}")], part["title"]
        else:
            assert head[-len(part["begins"]) :] == [shown(each, "time") for each in part["begins"]]
            for cells, (row, label, wanted) in zip(found, strip_rows(part), strict=True):
                marks = row.get("letters", " " * len(wanted))
                marked = [
                    text if text == "not seen" else mark.strip() + text
                    for mark, text in zip(marks, wanted, strict=True)
                ]
                assert cells == [*label, *marked], part["title"]
    assert numbers([page.text]) == numbers(texts(model, 99))


@pytest.mark.slow
def test_the_markdown_has_each_value_of_the_json_and_no_other(made: report.Report) -> None:
    model = json.loads(made.json)
    page = re.sub(r"\\(.)", r"\1", re.sub(r"^1\. ", "", made.markdown, flags=re.MULTILINE))
    runs = re.compile(r"(\d+)×(not seen|[\d.]+)")
    page = runs.sub(lambda run: ", ".join([run[2]] * int(run[1])), page)
    lines = page.splitlines()
    for part in parts(model):
        for cells in table_rows(part, " ({})") if part["kind"] == "table" else ():
            assert f"| {' | '.join(cells)} |" in lines
        for row, (label, *sums), cells in strip_rows(part) if part["kind"] == "strip" else ():
            bars = row["heights"].translate(str.maketrans("-012345678", "░·▁▂▃▄▅▆▇█"))
            letters = f" `{row['letters'].replace(' ', '·')}`" if "letters" in row else ""
            assert (
                f"| {' | '.join([label, f'`{bars}`{letters}', *sums, ', '.join(cells)])} |" in lines
            )
        for row in part["rows"] if part["kind"] == "list" else ():
            assert escaped(" ".join([row["text"], *row["also"]])) in lines
    assert numbers([page]) == numbers(texts(model, 1))


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
        "incidents": "No partition was seen without a leader or without one of its replicas.",
        "topics": "No topic was seen at risk.",
        "brokers": "Nothing is known about brokers.",
        "balance": "It is not known which broker led what.",
        "recovery": "No recovery was seen.",
        "changes": "No change was seen.",
        "not_seen": "58.93 % of the time of 2 clusters was observed.",
    }
    one, two = model["sections"][0]["parts"][0]["rows"]
    assert (one["rank"], one["leaderless"], one["unclean"]) == (1, 0, None)
    assert (two["rank"], two["observed"]) == (None, 0.1786)


@pytest.mark.slow
def test_what_was_not_observed_is_not_said_to_be_well(tmp_path: Path) -> None:
    hole = {"observed": 0.0, "hole": 60.0, "holes": [{"reason": "closed", "minutes": 60.0}]}
    rows = {"coverage_hour": [{**row, **hole} for row in covered("one", 24)]}
    fleet, *_, unseen = json.loads(report.make(write_gold(tmp_path / "out", rows)).json)["sections"]
    assert fleet["sentence"] == "None of 1 cluster was observed."
    (row,) = fleet["parts"][0]["rows"]
    assert {row[name] for name in ("leaderless", "incidents", "elections", "rank")} == {None}
    assert unseen["parts"][0]["rows"][0]["reasons"] == "recorder stopped 1 d"


def test_lengths_of_time_have_their_two_largest_units() -> None:
    texts = [duration(s) for s in (0, 0.25, 9.5, 59.7, 250, 3600, 7380, 90_061, 864_000)]
    assert texts == [
        *("0 s", "0.25 s", "9.5 s", "1 min", "4 min 10 s", "1 h", "2 h 3 min"),
        *("1 d 1 h", "10 d"),
    ]
