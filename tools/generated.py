"""Files that tools write: brought up to date, or only compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


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
