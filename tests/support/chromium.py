"""Debian's Chromium without a window, and a server of pages that counts what is asked of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

__all__ = ["AXE", "PROGRAM", "Chromium", "served", "text_of"]

PROGRAM = shutil.which("chromium")
_CACHE = Path(__file__).resolve().parents[2] / ".cache/axe-core"
AXE = next(iter(sorted(_CACHE.glob("*/axe.min.js"), reverse=True)), None)
_DARK = "--blink-settings=preferredColorScheme=0"


class Chromium:
    """Runs of Chromium; `folder` is where it keeps what it needs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.console: list[str] = []

    def dom(self, url: str, *, dark: bool = False) -> str:
        """Returns the elements of a page as they are after its scripts; `console` has its lines."""
        done = self._run(url, "--dump-dom", "--virtual-time-budget=60000", dark=dark)
        self.console = re.findall(r"CONSOLE.*", done.stderr)
        return done.stdout

    def picture(self, url: str, path: Path, width: int, height: int, *, dark: bool = False) -> None:
        """Takes a picture of a page that is so wide and high, of at least 500 pixels."""
        self._run(url, f"--screenshot={path}", f"--window-size={width},{height}", dark=dark)

    def printed(self, url: str, path: Path) -> None:
        """Prints a page as PDF."""
        self._run(url, f"--print-to-pdf={path}", "--no-pdf-header-footer")

    def _run(self, url: str, *options: str, dark: bool = False) -> subprocess.CompletedProcess[str]:
        assert PROGRAM is not None
        words = [PROGRAM, "--headless", "--disable-gpu", "--hide-scrollbars"]
        words += ["--enable-logging=stderr", f"--user-data-dir={self._folder}"]
        words += ["--no-sandbox"] if os.geteuid() == 0 else []
        words += [_DARK] if dark else []
        return subprocess.run(
            [*words, *options, url], capture_output=True, text=True, check=True, timeout=100
        )


@contextmanager
def served(pages: dict[str, str]) -> Iterator[tuple[str, list[str]]]:
    """Serves pages by their paths; yields the address, and the list of what was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = pages.get(self.path, "").encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def text_of(dom: str, name: str) -> str:
    """Returns the text of the element with an id."""
    found = re.search(rf'id="{name}"[^>]*>(.*?)</', dom, re.DOTALL)
    assert found is not None, dom[:2000]
    return unescape(found[1])
