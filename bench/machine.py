"""Describes the machine of a run."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path


def _line(path: str, prefix: str = "") -> str | None:
    """Returns the rest of the first line of a file that begins with `prefix`, or None."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith(prefix)), None)
    return None if found is None else found[len(prefix) :].strip(" \t:")


def _output(*command: str) -> str | None:
    """Returns the first line that a command prints, or None if it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.splitlines()[0] if done.stdout else None


def describe() -> dict[str, object]:
    """Returns CPU, caches, kernel, compiler, Python, load and time; None for unknown ones."""
    cache = "/sys/devices/system/cpu/cpu0/cache"
    return {
        "cpu": _line("/proc/cpuinfo", "model name"),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "cache_l2": _line(f"{cache}/index2/size"),
        "cache_l3": _line(f"{cache}/index3/size"),
        "memory": _line("/proc/meminfo", "MemTotal"),
        "huge_pages": _line("/sys/kernel/mm/transparent_hugepage/enabled"),
        "hypervisor": "hypervisor" in (_line("/proc/cpuinfo", "flags") or "").split(),
        "kernel": platform.release(),
        "compiler": _output(os.environ.get("CC", "gcc"), "--version"),
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "commit": _output("git", "describe", "--always", "--dirty"),
        "load": [round(value, 2) for value in os.getloadavg()],
        "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
