"""The page and the Markdown: templates over the model, which compute nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from rdmeta._escaping import escaped
from rdmeta.report.wording import clock, shown

MOST_CHARACTERS = 60_000
"""What a comment of a pull request takes, with some room left."""

_FEWER = (40, 30, 20, 15, 10, 7, 5, 3, 2, 1, 0)
# Signs of Markdown; those of lists and headings, which only count where a line begins; and links.
_MARKS = re.compile(r"([\\`*_\[\]<>|~&@$])|^(?=[-+=#])|(?<=\d)(?=[.)] )|(?=://)")
_BLOCKS = dict(zip("-012345678", "░·▁▂▃▄▅▆▇█", strict=True))


def html_page(model: Mapping[str, Any]) -> str:
    """Returns the page of a model."""
    style = Markup(_file("page.css"))  # the one text that is not escaped
    return _environment("html").from_string(_file("page.html")).render(model, style=style) + "\n"


def markdown_page(model: Mapping[str, Any]) -> str:
    """Returns the Markdown of a model; its lists end where all of it fits."""
    template = _environment("md").from_string(_file("page.md"))
    for most in _FEWER:
        text = template.render(model, most=most)
        if len(text) <= MOST_CHARACTERS:
            break
    return f"{text.rstrip()}\n"


def _plain(value: object) -> object:
    """Returns a value with escapes for what does not print."""
    is_plain = isinstance(value, str) and not isinstance(value, Markup)
    return escaped(str(value)) if is_plain else value


def _marked(value: object) -> Markup:
    """Returns a text that Markdown shows as it is: names may have its signs."""
    if isinstance(value, Markup):
        return value
    return Markup(_MARKS.sub(lambda found: f"\\{found[0]}", escaped(str(value))))


@cache
def _environment(form: str) -> Environment:
    found = Environment(
        autoescape=form == "html",
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=_plain if form == "html" else _marked,
    )
    found.filters.update(shown=shown, clock=clock, bar=_bar, cell=_cell, runs=_runs)
    return found


def _bar(heights: str) -> Markup:
    """Returns heights as blocks, the bars of Markdown."""
    return Markup("".join(_BLOCKS[each] for each in heights))


def _cell(value: object) -> str:
    """Returns the number of a cell of a strip."""
    return "not seen" if value is None else shown(value, "number")


def _runs(cells: Sequence[object]) -> str:
    """Returns the numbers of cells as Markdown has them, those that are repeated once."""
    runs = [(text, sum(1 for _ in same)) for text, same in groupby(map(_cell, cells))]
    return ", ".join(f"{count}×{text}" if count > 1 else text for text, count in runs)


def _file(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
