"""Every relative link of a page leads to a file, and to a heading of it."""

from __future__ import annotations

import re
from pathlib import Path

from tree_rules import written_files

ROOT = Path(__file__).resolve().parents[2]


def prose(page: Path) -> str:
    """Returns the text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)


def anchors(page: Path) -> set[str]:
    """Returns the names by which GitHub links the headings of a page."""
    found: set[str] = set()
    for title in re.findall(r"^#+ (.*)$", prose(page), re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).lower()
        name = re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-")
        number = next(
            n for n in range(len(found) + 1) if (f"{name}-{n}" if n else name) not in found
        )
        found.add(f"{name}-{number}" if number else name)
    return found


def broken(page: Path) -> list[str]:
    """Returns the links of a page that lead nowhere."""
    found = []
    for link in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", prose(page)):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link)
    return found


def test_every_link_of_every_page_leads_somewhere() -> None:
    pages = [path for path in written_files(ROOT) if path.suffix == ".md"]
    assert len(pages) > 20
    assert {str(page.relative_to(ROOT)): broken(page) for page in pages if broken(page)} == {}


def test_every_page_of_docs_can_be_reached_from_the_index() -> None:
    docs = ROOT / "docs"
    reached, left = set[Path](), [docs / "index.md"]
    while left:
        page = left.pop()
        if page not in reached:
            reached.add(page)
            links = re.findall(r"\]\((?!\w+:)([^)#\s]+\.md)", prose(page))
            left += [(page.parent / link).resolve() for link in links]
    assert set(docs.rglob("*.md")) - reached == set()


def test_a_link_to_a_missing_file_or_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`: c, d\n## Twice\n## Twice\n```sh\n# no heading [x](no-link.md)\n```\n"
        "[1](#a-b-c-d) [2](page.md#twice-1) [3](gone.md) [4](#no-heading) [5](page.md#twice-2)\n"
        "[6](https://example.com/gone)\n"
    )
    assert broken(page) == ["gone.md", "#no-heading", "page.md#twice-2"]


def test_files_that_the_internals_name_exist() -> None:
    """Looks for each path in backticks; a module may stand without its suffix."""
    gone = []
    for page in (ROOT / "docs/internals").glob("*.md"):
        if page.name != "renames.md":
            for path in re.findall(r"`((?:rdmeta|csrc|tests|bench|tools)/[\w./-]+)`", prose(page)):
                if not (ROOT / path).exists() and not list(ROOT.glob(f"{path}.*")):
                    gone.append((page.name, path))
    assert gone == []
