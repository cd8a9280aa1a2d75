"""`rdmeta log ls`, `cat`, `tree` and `find`: a state under the paths of Kafka's metadata shell.

    /image/topics/byName/orders/3       /image/cluster/brokers/1
    /image/configs/TOPIC:orders/retention.ms      /image/acls/ID

A node makes its children only when a path goes through it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, NamedTuple

from rdmeta._escaping import escaped
from rdmeta.cli.log_opening import LogRequest
from rdmeta.cli.messages import FINE, UNMET, BadInputError
from rdmeta.cli.output import Table, columns, json_text, open_stdout
from rdmeta.kraft import Fact, KraftState, RecordMark
from rdmeta.kraft.log_state import entity_name

_ROOT = "image"
_RESOURCES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


class TreeNode(NamedTuple):
    """A directory makes its `children`, a leaf its `value`."""

    children: Callable[[], Mapping[str, TreeNode]] | None = None
    value: Callable[[], Any] | None = None


_Nodes = dict[str, TreeNode]


def answer(request: LogRequest) -> int:
    """Prints a part of the tree; returns 1 if there is nothing at a path."""
    paths = [each for each in request.arguments if _is_inner(each)]
    outer = [each for each in request.arguments if not _is_inner(each)]
    if not outer:
        raise BadInputError(f"log {request.word} needs the PATH of a log before {paths[0]}")
    state = request.state(request.log(outer), request.at)
    root = tree_of(state)
    code, found = FINE, []
    for path in paths or [f"/{_ROOT}"]:
        matching = list(_matching(root, path))
        found += matching
        if not matching:
            request.messages.fault(f"there is no {path} in the state")
            code = UNMET
    _WORDS[request.word](request, {**request.head(), "state": _provenance(state)}, found)
    return code


def _is_inner(path: str) -> bool:
    return path.rstrip("/") == f"/{_ROOT}" or path.startswith(f"/{_ROOT}/")


def _matching(root: TreeNode, path: str) -> Iterator[tuple[str, TreeNode]]:
    """Yields the nodes at a path, in which *, ? and [] stand for parts of names."""
    found = [("", TreeNode(lambda: {_ROOT: root}))]
    for part in path.strip("/").split("/"):
        found = [
            (f"{place}/{name}", node)
            for place, parent in found
            for name, node in _named(parent, part)
        ]
    yield from found


def _named(parent: TreeNode, pattern: str) -> Iterable[tuple[str, TreeNode]]:
    children = parent.children() if parent.children else {}
    if pattern in children:
        return [(pattern, children[pattern])]
    return [each for each in children.items() if fnmatchcase(each[0], pattern)]


# ---- the words ----------------------------------------------------------------------------------

_Found = list[tuple[str, TreeNode]]
# The first members of what --json prints.
_Head = dict[str, Any]
_NAMES = columns("path")


def _names(request: LogRequest, head: _Head, paths: Iterable[str]) -> None:
    if request.output.form == "json":
        request.output.json([json_text({**head, "paths": list(paths)})])
    elif request.output.form == "text":
        write = open_stdout().write
        for path in paths:
            write(f"{escaped(path)}\n")
    else:
        request.output.tables(Table(_NAMES, ([path] for path in paths)))


def _ls(request: LogRequest, head: _Head, found: _Found) -> None:
    def below() -> Iterator[str]:
        for path, node in found:
            names = [path] if node.children is None else node.children()
            yield from names

    _names(request, head, below())


def _find(request: LogRequest, head: _Head, found: _Found) -> None:
    def below(path: str, node: TreeNode) -> Iterator[str]:
        yield path
        for name, child in (node.children() if node.children else {}).items():
            yield from below(f"{path}/{name}", child)

    _names(request, head, (each for path, node in found for each in below(path, node)))


def _tree(request: LogRequest, head: _Head, found: _Found) -> None:
    def below(node: TreeNode, depth: int) -> Iterator[str]:
        for name, child in (node.children() if node.children else {}).items():
            text = "" if child.value is None else f": {json_text(child.value())}"
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
        request.output.json([json_text({**head, "nodes": nodes})])
        return
    for _, value in values:
        open_stdout().write(f"{json.dumps(json.loads(json_text(value)), indent=2)}\n")


def _whole(node: TreeNode) -> Any:
    if node.value is not None:
        return node.value()
    children = node.children() if node.children else {}
    return {name: _whole(child) for name, child in children.items()}


_WORDS: dict[str, Callable[[LogRequest, _Head, _Found], None]] = {
    "ls": _ls,
    "cat": _cat,
    "tree": _tree,
    "find": _find,
}


# ---- the tree -----------------------------------------------------------------------------------


def tree_of(state: KraftState) -> TreeNode:
    """Returns the node /image of a state."""
    facts = _Facts(state)
    cluster = {
        "brokers": TreeNode(lambda: _leaves(state.brokers)),
        "controllers": TreeNode(lambda: facts.named("controllers", "controllerId")),
    }
    topics = {
        "byName": TreeNode(lambda: _topics(state, "name")),
        "byId": TreeNode(lambda: _topics(state, "topic_id")),
    }
    return _directory(
        {
            "provenance": TreeNode(value=lambda: _provenance(state)),
            "features": TreeNode(facts.features),
            "cluster": _directory(cluster),
            "topics": _directory(topics),
            "configs": TreeNode(facts.configs),
            "clientQuotas": TreeNode(facts.quotas),
            "producerIds": TreeNode(facts.producer_ids),
            "acls": TreeNode(lambda: facts.named("acls", "id")),
            "scram": TreeNode(facts.credentials),
            "delegationToken": TreeNode(lambda: facts.named("tokens", "tokenId")),
            "other": TreeNode(facts.others),
        }
    )


def _directory(children: Mapping[str, TreeNode]) -> TreeNode:
    return TreeNode(lambda: children)


def _provenance(state: KraftState) -> dict[str, Any]:
    names = ("offset", "time", "epoch", "leader", "proven", "partial", "transaction", "faults")
    return {name: getattr(state, name) for name in names}


def _leaves(rows: Mapping[int, Any]) -> dict[str, TreeNode]:
    return {str(key): _leaf(row._asdict(), row.mark) for key, row in rows.items()}


def _leaf(value: Mapping[str, Any], mark: RecordMark) -> TreeNode:
    rest = {name: each for name, each in value.items() if name != "mark"}
    return TreeNode(value=lambda: {**rest, "provenance": mark._asdict()})


def _topics(state: KraftState, name: str) -> dict[str, TreeNode]:
    def partitions(topic: str) -> Callable[[], dict[str, TreeNode]]:
        return lambda: _leaves({row.partition: row for row in state.partitions(topic)})

    return {getattr(row, name): TreeNode(partitions(row.name)) for row in state.topics.values()}


class _Facts:
    """All that is no row, by the place in the tree."""

    def __init__(self, state: KraftState) -> None:
        self._state = state

    @cached_property
    def _all(self) -> dict[str, list[Fact]]:
        found: dict[str, list[Fact]] = {}
        for fact in self._state.facts():
            found.setdefault(fact.kind, []).append(fact)
        return found

    def _of(self, kind: str) -> list[Fact]:
        return self._all.get(kind, [])

    def named(self, kind: str, key: str) -> dict[str, TreeNode]:
        """Returns a leaf for each fact of a kind, by one of its fields, or by a number."""
        found: _Nodes = {}
        for number, each in enumerate(self._of(kind)):
            name = str(each.data.get(key))
            is_name = name not in ("***", *found)
            found[name if is_name else str(number)] = _leaf(each.data, each.mark)
        return found

    def _grouped(self, kind: str, place: Callable[[Mapping[str, Any]], tuple[str, str]]) -> _Nodes:
        found: dict[str, dict[str, TreeNode]] = {}
        for fact in self._of(kind):
            outer, inner = place(fact.data)
            found.setdefault(outer, {})[inner] = _leaf(fact.data, fact.mark)
        return {name: _directory(leaves) for name, leaves in found.items()}

    def features(self) -> _Nodes:
        found = {}
        for name, leaf in self.named("features", "name").items():
            is_version = name == "metadata.version"
            found["metadataVersion" if is_version else f"finalized_{name}"] = leaf
        for fact in self._of("migration"):
            found["zkMigrationState"] = _leaf(fact.data, fact.mark)
        return found

    def configs(self) -> _Nodes:
        def place(data: Mapping[str, Any]) -> tuple[str, str]:
            kind = _RESOURCES.get(data["resourceType"], str(data["resourceType"]))
            resource = data["resourceName"]
            return f"{kind}:{resource}" if resource else kind, data["name"]

        return self._grouped("configs", place)

    def quotas(self) -> _Nodes:
        return self._grouped("quotas", lambda data: (entity_name(data["entity"]), data["key"]))

    def credentials(self) -> _Nodes:
        def place(data: Mapping[str, Any]) -> tuple[str, str]:
            return _MECHANISMS.get(data["mechanism"], str(data["mechanism"])), data["name"]

        return self._grouped("credentials", place)

    def producer_ids(self) -> _Nodes:
        found = self._of("producer_ids")
        return {"nextProducerId": _leaf(found[0].data, found[0].mark)} if found else {}

    def others(self) -> _Nodes:
        """The quorum's voters, which Kafka's shell does not show."""
        found = ((kind, enumerate(self._of(kind))) for kind in ("kraft_version", "voters"))
        return {
            kind: _directory({str(number): _leaf(each.data, each.mark) for number, each in facts})
            for kind, facts in found
            if self._of(kind)
        }
