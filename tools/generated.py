"""Brings generated files and pages up to date; has what the tools that write them share.

    python tools/generated.py          # runs every writer
    python tools/generated.py --check  # writes nothing; exits with 1 if a file is behind

`make lint` runs it with --check.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = (
    "api_table",
    "change_table",
    "cli_docs",
    "measure_docs",
    "options_page",
    "record_table",
    "spark_sql",
)


def bring_up_to_date(wanted: Mapping[Path, str], check: bool) -> int:
    """Writes the files whose text differs; with `check` only names them.

    Returns the exit code: 1 if `check` found a file that is behind, else 0.
    """
    stale = [
        path
        for path, text in wanted.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        print(f"{path.relative_to(ROOT)} {'is behind' if check else 'written'}")
        if not check:
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if check and stale else 0


def pages() -> dict[Path, str]:
    """Returns the pages that programs outside of tools/ write, as they should be."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests/support")]
    import scenarios
    import wrong_configurations

    from bench import performance

    return {
        **performance.made(),
        scenarios.PAGE: scenarios.page(scenarios.load(scenarios.RESULTS)),
        wrong_configurations.PAGE: wrong_configurations.page(wrong_configurations.load()),
    }


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="writes nothing")
    check = parser.parse_args(argv).check
    words = ["--check"] if check else []
    codes = [
        subprocess.run([sys.executable, ROOT / f"tools/{tool}.py", *words], check=False).returncode
        for tool in TOOLS
    ]
    codes.append(bring_up_to_date(pages(), check))
    if check and any(codes):
        print("run .venv/bin/python tools/generated.py and look at what it writes")
    return max(map(abs, codes))


if __name__ == "__main__":
    sys.exit(main())
