"""Takes the pictures of README.md and docs/report.md: a report of the scenario bad-friday.

python tools/screenshots.py              # writes docs/images/report-*.png; needs chromium
python tools/screenshots.py --look DIR   # and pictures of all widths, dark and printed, to look at
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from generated import ROOT

sys.path[:0] = [str(ROOT / "tests/support")]

from chromium import PROGRAM, Chromium  # noqa: E402

IMAGES = ROOT / "docs/images"
BEGIN, END = "2026-11-16", "2026-11-23"
# The name of a picture, its section, width and height, and whether it is dark.
PICTURES = (
    ("light", "", 900, 720, False),
    ("dark", "", 900, 720, True),
    ("topics", "topics", 900, 700, False),
)
LOOKS = ((500, 9000), (900, 7000), (1600, 6000))


def page(folder: Path) -> Path:
    """Returns the page of the scenario, made in `folder`."""
    for words in (
        ("generate", "bad-friday", "made", "--begin", BEGIN),
        ("pipeline", "all", "made", "tables", "--engine", "local", "-q"),
        ("report", "tables", "--since", BEGIN, "--until", END, "-o", "report.html"),
    ):
        command = [sys.executable, "-c", "from rdmeta.cli import main; main()", *words]
        subprocess.run(command, check=True, cwd=folder)
    return folder / "report.html"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--look", type=Path, metavar="DIR")
    chosen = parser.parse_args()
    if PROGRAM is None:
        print("there is no chromium: install it")
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        browser, made = Chromium(Path(scratch, "browser")), page(Path(scratch))
        IMAGES.mkdir(exist_ok=True)
        for name, section, width, height, dark in PICTURES:
            target = IMAGES / f"report-{name}.png"
            alone = made.with_name("alone.html")
            hidden = f"body > :not(main), section:not(#{section}) {{ display: none }}" * bool(
                section
            )
            text = made.read_text(encoding="utf-8")
            alone.write_text(text.replace("</style>", f"{hidden}</style>"), encoding="utf-8")
            browser.picture(alone.as_uri(), target, width, height, dark=dark)
            print(f"{target.relative_to(ROOT)} written")
        if chosen.look is not None:
            chosen.look.mkdir(exist_ok=True)
            browser.printed(made.as_uri(), chosen.look / "printed.pdf")
            for width, height in LOOKS:
                for dark in (False, True):
                    target = chosen.look / f"{width}-{'dark' if dark else 'light'}.png"
                    browser.picture(made.as_uri(), target, width, height, dark=dark)
    return 0


if __name__ == "__main__":
    sys.exit(main())
