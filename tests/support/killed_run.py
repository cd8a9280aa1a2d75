"""A run of the pipeline in a process that another one kills: python killed_run.py IN OUT COUNT.

The process writes a line after each rename, and waits for its end after `COUNT` of them.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any


def main(source: str, out: str, count: int) -> None:
    from rdmeta import pipeline

    replace = os.replace
    renames = 0

    def counted(*arguments: Any, **options: Any) -> None:
        nonlocal renames
        replace(*arguments, **options)
        renames += 1
        print(renames, flush=True)
        if renames == count:
            signal.pause()

    os.replace = counted
    print("begun", flush=True)
    pipeline.run(pipeline.plan([source], out), workers=1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
