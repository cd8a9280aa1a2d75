"""Twelve mistakes, each a patch of shipped code, which the simulation must find.

A simulation that finds no mistake proves nothing. A patch replaces one text of a file of
`rdmeta/client/`. It is an error if the text is not there exactly once, so that no patch becomes
empty when the code changes. `found.json` has the seed that finds each mistake, and the check that
fails. `make mistakes` looks for the seeds anew.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import json
import sys
from collections.abc import Sequence
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from rdmeta.client.policy import Policy

FOLDER = Path(__file__).parent
CLIENT = Path(sys.modules["rdmeta.client.policy"].__file__ or "").parent
FOUND = FOLDER / "found.json"
# The modules that the world and a patched policy share: the types of actions and events.
SHARED = ("rdmeta.client.actions", "rdmeta.client.actions")


class Mistake(NamedTuple):
    """A patch: in `file` of rdmeta/client the text `old` becomes `new`."""

    file: str
    old: str
    new: str


MISTAKES: dict[str, Mistake] = {
    "no suspect": Mistake("policy.py", "self._suspects.add(broker, now)", "pass"),
    "no jitter": Mistake(
        "backoff.py", "return seconds * random.uniform(1 - JITTER, 1 + JITTER)", "return seconds"
    ),
    "a hint not purged": Mistake(
        "requests.py", "self._cache.apply_failure(flight.request)", "pass"
    ),
    "a need lost when an answer overtakes it": Mistake(
        "policy.py",
        "self._requests.succeeded(flight, applied, now)",
        "self._requests.succeeded(flight, applied, now); "
        "self._subscriptions.sent(list(self._subscriptions.new))",
    ),
    "busy taken for lost": Mistake(
        "connecting.py", "and self._nodes.is_lost(now, self._wish)", "and self._nodes.is_any_ready"
    ),
    "an epoch not compared": Mistake(
        "complaints.py", "return known.leader_epoch != complaint.epoch", "return True"
    ),
    "backoff reset by any answer": Mistake(
        "backoff.py", "= 0 if progress else self.equivalents + 1", "= 0"
    ),
    "throttling ignored": Mistake("nodes.py", "link.server.throttled_until <= now", "True"),
    "ASK_OTHER to the same node": Mistake(
        "policy.py", "self._nodes.behind(link.server, now)", "pass"
    ),
    "a rebootstrap that keeps a connection": Mistake(
        "connecting.py", "return links", "return links[1:]"
    ),
    "a wait that outlives close()": Mistake(
        "policy.py", "self._waiters.fail_all(_closed())", "pass"
    ),
    "two full requests in flight": Mistake(
        "requests.py",
        "if (full is None and not wants) or not self._is_free(kind):",
        "if full is None and not wants:",
    ),
}


class PatchError(Exception):
    """A patch does not fit the shipped code."""


def patched(mistake: Mistake) -> str:
    """Returns the patched source; raises PatchError if the old text is not there exactly once."""
    text = (CLIENT / mistake.file).read_text(encoding="utf-8")
    count = text.count(mistake.old)
    if count != 1:
        raise PatchError(
            f"{mistake.file} has {count} times the text that a mistake replaces:\n{mistake.old}"
        )
    return text.replace(mistake.old, mistake.new)


class _Patched(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from a patched source."""

    def __init__(self, module: str, source: str) -> None:
        self.module, self.source = module, source

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name == self.module else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.source, f"<patched {self.module}>", "exec"), module.__dict__)


@cache
def policy_of(name: str | None) -> type[Policy]:
    """Returns the policy as it is shipped, or with one of the mistakes.

    The patched policy comes with fresh copies of the other modules of rdmeta.client.
    """
    if name is None:
        return Policy
    mistake = MISTAKES[name]
    finder = _Patched(f"rdmeta.client.{Path(mistake.file).stem}", patched(mistake))
    own = {
        module: sys.modules.pop(module)
        for module in list(sys.modules)
        if module.startswith("rdmeta.client.") and module not in SHARED
    }
    sys.meta_path.insert(0, finder)
    try:
        made: type[Policy] = importlib.import_module("rdmeta.client.policy").Policy
    finally:
        sys.meta_path.remove(finder)
        for module in list(sys.modules):
            if module.startswith("rdmeta.client.") and module not in SHARED:
                del sys.modules[module]
        sys.modules.update(own)
        package = sys.modules["rdmeta.client"]
        for module, loaded in own.items():
            setattr(package, module.rpartition(".")[2], loaded)
    return made


def found() -> dict[str, tuple[int, str]]:
    """Returns the seed that finds each mistake, and the check that fails."""
    return {name: (seed, rule) for name, (seed, rule) in json.loads(FOUND.read_text()).items()}


def write_found(seeds: dict[str, tuple[int, str]]) -> None:
    lines = [f"  {json.dumps(name)}: {json.dumps(list(seeds[name]))}" for name in sorted(seeds)]
    FOUND.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
