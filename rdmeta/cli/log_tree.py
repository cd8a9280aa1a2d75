"""`rdmeta log ls`, `cat`, `tree` and `find`: a state under the paths of Kafka's metadata shell.

    /image/topics/byName/orders/3       /image/cluster/brokers/1
    /image/configs/TOPIC:orders/retention.ms      /image/acls/ID

A directory makes its children only when a path goes through it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from rdmeta._escaping import escaped
from rdmeta.cli.log_opening import LogRequest
from rdmeta.cli.messages import FINE, UNMET, BadInputError
from rdmeta.cli.output import Table, columns, json_text, open_stdout
from rdmeta.kraft import Fact, KraftState
from rdmeta.kraft.log_state import entity_name

_ROOT = "image"
_RESOURCES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


class Leaf(NamedTuple):
    """What is at the end of a path."""

    value: Mapping[str, Any]


Children: TypeAlias = "Mapping[str, TreeNode]"
TreeNode: TypeAlias = "Leaf | Children | Callable[[], Children]"


def answer(request: LogRequest) -> int:
    """Prints a part of the tree; returns 1 if there is nothing at a path."""
    paths = [each for each in request.arguments if _is_inner(each)]
    outer = [each for each in request.arguments if not _is_inner(each)]
    if not outer:
        raise BadInputError(f"log {request.word} needs the PATH of a log before {paths[0]}")
    state = request.state(request.log(outer), request.at)
    root: TreeNode = {_ROOT: tree_of(state)}
    code, found = FINE, []
    for path in paths or [f"/{_ROOT}"]:
        matching = list(_matching(root, path))
        found += matching
        if not matching:
            request.messages.fault(f"there is no {path} in the state")
            code = UNMET
    _WORDS[request.word](request, {"state": _provenance(state)}, found)
    return code


def _is_inner(path: str) -> bool:
    return path.rstrip("/") == f"/{_ROOT}" or path.startswith(f"/{_ROOT}/")


def _matching(root: TreeNode, path: str) -> list[tuple[str, TreeNode]]:
    """Returns the nodes at a path, in which *, ? and [] stand for parts of names."""
    found = [("", root)]
    for part in path.strip("/").split("/"):
        found = [
            (f"{place}/{name}", child)
            for place, parent in found
            for children in [_children(parent)]
            for name, child in children.items()
            if name == part or (part not in children and fnmatchcase(name, part))
        ]
    return found


def _children(node: TreeNode) -> Children:
    return {} if isinstance(node, Leaf) else node() if callable(node) else node


# ---- the words ----------------------------------------------------------------------------------

_Found = list[tuple[str, TreeNode]]
# The members that --json begins with, which name the state.
_Head = dict[str, Any]
_NAMES = columns("path")


def _names(request: LogRequest, head: _Head, paths: Iterable[str]) -> None:
    if request.output.form == "text":
        write = open_stdout().write
        for path in paths:
            write(f"{escaped(path)}\n")
        return
    found = list(paths)
    request.answer({**head, "paths": found}, Table(_NAMES, ([path] for path in found)))


def _ls(request: LogRequest, head: _Head, found: _Found) -> None:
    names = ([path] if isinstance(node, Leaf) else _children(node) for path, node in found)
    _names(request, head, (name for each in names for name in each))


def _find(request: LogRequest, head: _Head, found: _Found) -> None:
    def below(path: str, node: TreeNode) -> Iterator[str]:
        yield path
        for name, child in _children(node).items():
            yield from below(f"{path}/{name}", child)

    _names(request, head, (each for path, node in found for each in below(path, node)))


def _tree(request: LogRequest, head: _Head, found: _Found) -> None:
    def below(node: TreeNode, depth: int) -> Iterator[str]:
        for name, child in _children(node).items():
            text = f": {json_text(child.value)}" if isinstance(child, Leaf) else ""
            yield f"{'  ' * depth}{escaped(name)}{text}"
            yield from below(child, depth + 1)

    if request.output.form != "text":
        _cat(request, head, found)
        return
    write = open_stdout().write
    for path, node in found:
        write(f"{escaped(path)}\n")
        for line in below(node, 1):
            write(f"{line}\n")


def _cat(request: LogRequest, head: _Head, found: _Found) -> None:
    """Writes JSON: of a directory, all below it."""
    if request.output.form not in ("json", "text"):
        raise BadInputError(f"log {request.word} prints JSON: leave out the other form")
    values = [(path, _whole(node)) for path, node in found]
    if request.output.form == "json":
        nodes = [{"path": path, "value": value} for path, value in values]
        request.answer({**head, "nodes": nodes})
        return
    for _, value in values:
        open_stdout().write(f"{json.dumps(json.loads(json_text(value)), indent=2)}\n")


def _whole(node: TreeNode) -> Any:
    if isinstance(node, Leaf):
        return node.value
    return {name: _whole(child) for name, child in _children(node).items()}


_WORDS: dict[str, Callable[[LogRequest, _Head, _Found], None]] = {
    "ls": _ls,
    "cat": _cat,
    "tree": _tree,
    "find": _find,
}


# ---- the tree -----------------------------------------------------------------------------------


def tree_of(state: KraftState) -> Children:
    """Returns the children of /image, of a state."""

    @cache
    def facts() -> dict[str, Any]:
        return _facts(state)

    def of_facts(name: str) -> Callable[[], Children]:
        return lambda: facts().get(name, {})

    return {
        "provenance": Leaf(_provenance(state)),
        "features": of_facts("features"),
        "cluster": {
            "brokers": lambda: {str(id): _row(row) for id, row in state.brokers.items()},
            "controllers": of_facts("controllers"),
        },
        "topics": {
            "byName": lambda: _topics(state, "name"),
            "byId": lambda: _topics(state, "topic_id"),
        },
        **{name: of_facts(name) for name in _DIRECTORIES},
    }


def _provenance(state: KraftState) -> dict[str, Any]:
    names = ("offset", "time", "epoch", "leader", "proven", "partial", "transaction", "faults")
    return {name: getattr(state, name) for name in names}


def _row(row: Any) -> Leaf:
    value = row._asdict()
    mark = value.pop("mark")
    return Leaf({**value, "provenance": mark._asdict()})


def _topics(state: KraftState, name: str) -> Children:
    def partitions(topic: str) -> Callable[[], Children]:
        return lambda: {str(row.partition): _row(row) for row in state.partitions(topic)}

    return {getattr(row, name): partitions(row.name) for row in state.topics.values()}


_DIRECTORIES = (
    "configs", "clientQuotas", "producerIds", "acls", "scram", "delegationToken", "other",
)  # fmt: skip


def _facts(state: KraftState) -> dict[str, Any]:
    """Returns the directories of what is no row."""
    found: dict[str, Any] = {}
    for fact in state.facts():
        *outer, name = _place(fact)
        directory = found
        for each in outer:
            directory = directory.setdefault(each, {})
        # A record without a name, or with a hidden one, is shown by a number.
        is_name = name not in ("***", "", *directory)
        value = {**fact.data, "provenance": fact.mark._asdict()}
        directory[name if is_name else str(len(directory))] = Leaf(value)
    return found


def _place(fact: Fact) -> tuple[str, ...]:
    """Returns the path of a fact, with "" as the name of one that has none."""
    data, kind = fact.data, fact.kind
    if kind == "features":
        name = data["name"]
        return kind, "metadataVersion" if name == "metadata.version" else f"finalized_{name}"
    if kind == "configs":
        number, resource = data["resourceType"], data["resourceName"]
        of = _RESOURCES.get(number, str(number))
        return kind, f"{of}:{resource}" if resource else of, data["name"]
    if kind == "quotas":
        return "clientQuotas", entity_name(data["entity"]), data["key"]
    if kind == "credentials":
        return "scram", _MECHANISMS.get(data["mechanism"], str(data["mechanism"])), data["name"]
    if kind in _NAMED:
        directory, field = _NAMED[kind]
        return directory, str(data.get(field, ""))
    return _ALONE.get(kind, ("other", kind, ""))


_NAMED = {
    "acls": ("acls", "id"),
    "controllers": ("controllers", "controllerId"),
    "tokens": ("delegationToken", "tokenId"),
}
_ALONE = {
    "migration": ("features", "zkMigrationState"),
    "producer_ids": ("producerIds", "nextProducerId"),
}
