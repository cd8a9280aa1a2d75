"""`rdmeta log ls`, `cat`, `tree` and `find`: a state under the paths of Kafka's metadata shell.

    /image/topics/byName/orders/3       /image/cluster/brokers/1
    /image/configs/TOPIC:orders/retention.ms      /image/acls/ID

What the state is not asked for is not made: a node makes its children when a path goes through it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from rdmeta._core import KraftReplay
from rdmeta.cli.log_opening import LogRequest, state_of
from rdmeta.cli.messages import FINE, UNMET, BadInputError
from rdmeta.cli.output import Table, TableColumn, json_text, open_stdout

_ROOT = "image"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_RESOURCES = {2: "TOPIC", 4: "BROKER", 8: "BROKER_LOGGER", 16: "CLIENT_METRICS", 32: "GROUP"}
_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_ENTITIES = {"client-id": "clientId"}
_PARTITION = (
    *("partition", "leader", "leader_epoch", "partition_epoch", "recovering", "replicas", "isr"),
    *("removing", "adding", "elr", "last_known_elr", "directories"),
)
_BROKER = ("broker", "epoch", "fenced", "shutting_down", "log_dirs", "cordoned_log_dirs")


class TreeNode(NamedTuple):
    """A directory makes its `children`, a leaf its `value`."""

    children: Callable[[], Mapping[str, TreeNode]] | None = None
    value: Callable[[], Any] | None = None


def answer(request: LogRequest) -> int:
    """Prints a part of the tree; returns 1 if there is nothing at a path."""
    paths = [each for each in request.arguments if _is_inner(each)]
    outer = [each for each in request.arguments if not _is_inner(each)]
    if not outer:
        raise BadInputError(f"log {request.word} needs the PATH of a log before {paths[0]}")
    root = tree_of(state_of(request, outer), request.show_secrets)
    code, found = FINE, []
    for path in paths or [f"/{_ROOT}"]:
        matching = list(_matching(root, path))
        found += matching
        if not matching:
            request.messages.fault(f"there is no {path} in the state")
            code = UNMET
    _WORDS[request.word](request, found)
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
_NAMES = (TableColumn("path"),)


def _names(request: LogRequest, paths: Iterable[str]) -> None:
    if request.output.form == "json":
        head = {"version": 1, "command": "log", "word": request.word}
        request.output.json([json_text({**head, "paths": list(paths)})])
    elif request.output.form == "text":
        write = open_stdout().write
        for path in paths:
            write(f"{path}\n")
    else:
        request.output.tables(Table(_NAMES, ([path] for path in paths)))


def _ls(request: LogRequest, found: _Found) -> None:
    def below() -> Iterator[str]:
        for path, node in found:
            names = [path] if node.children is None else node.children()
            yield from names

    _names(request, below())


def _find(request: LogRequest, found: _Found) -> None:
    def below(path: str, node: TreeNode) -> Iterator[str]:
        yield path
        for name, child in (node.children() if node.children else {}).items():
            yield from below(f"{path}/{name}", child)

    _names(request, (each for path, node in found for each in below(path, node)))


def _tree(request: LogRequest, found: _Found) -> None:
    def below(node: TreeNode, depth: int) -> Iterator[str]:
        for name, child in (node.children() if node.children else {}).items():
            text = "" if child.value is None else f": {json_text(child.value())}"
            yield f"{'  ' * depth}{name}{text}"
            yield from below(child, depth + 1)

    if request.output.form != "text":
        _cat(request, found)
        return
    write = open_stdout().write
    for path, node in found:
        write(f"{path}\n")
        for line in below(node, 1):
            write(f"{line}\n")


def _cat(request: LogRequest, found: _Found) -> None:
    """Writes JSON: of a directory, all below it."""
    if request.output.form not in ("json", "text"):
        raise BadInputError(f"log {request.word} prints JSON: leave out the other form")
    values = [(path, _whole(node)) for path, node in found]
    if request.output.form == "json":
        head = {"version": 1, "command": "log", "word": request.word}
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


_WORDS: dict[str, Callable[[LogRequest, _Found], None]] = {
    "ls": _ls,
    "cat": _cat,
    "tree": _tree,
    "find": _find,
}


# ---- the tree -----------------------------------------------------------------------------------


def tree_of(replay: KraftReplay, show_secrets: bool = False) -> TreeNode:
    """Returns the node /image of a state."""
    facts = _Facts(replay, show_secrets)
    return _directory(
        {
            "provenance": TreeNode(value=lambda: _provenance(replay.info())),
            "features": TreeNode(facts.features),
            "cluster": _directory(
                {
                    "brokers": TreeNode(lambda: _brokers(replay)),
                    "controllers": TreeNode(facts.controllers),
                }
            ),
            "topics": _directory(
                {
                    "byName": TreeNode(lambda: _topics(replay, 0)),
                    "byId": TreeNode(lambda: _topics(replay, 1)),
                }
            ),
            "configs": TreeNode(facts.configs),
            "clientQuotas": TreeNode(facts.quotas),
            "producerIds": TreeNode(facts.producer_ids),
            "acls": TreeNode(facts.acls),
            "scram": TreeNode(facts.scram),
            "delegationToken": TreeNode(facts.tokens),
            "other": TreeNode(facts.others),
        }
    )


def _directory(children: Mapping[str, TreeNode]) -> TreeNode:
    return TreeNode(lambda: children)


def _leaf(value: Any) -> TreeNode:
    return TreeNode(value=lambda: value)


def _provenance(info: dict[str, Any]) -> dict[str, Any]:
    names = ("next", "epoch", "leader", "latest_us", "partial", "pending", "skipped", "unknown")
    found = {name: info[name] for name in names}
    us = found.pop("latest_us")
    return {**found, "time": None if us is None else _time(us)}


def _time(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)


def _marked(value: dict[str, Any], mark: tuple[int, int, int | None, bool]) -> dict[str, Any]:
    offset, us, epoch, before = mark
    made = {"offset": offset, "epoch": epoch, "time": _time(us), "at_or_before": before}
    return {**value, "provenance": made}


def _topics(replay: KraftReplay, key: int) -> dict[str, TreeNode]:
    def partitions(name: str) -> Callable[[], dict[str, TreeNode]]:
        return lambda: {str(row[0]): _partition(row) for row in replay.partitions(name)}

    return {row[key]: TreeNode(partitions(row[0])) for row in replay.topics()}


def _partition(row: tuple[Any, ...]) -> TreeNode:
    def value() -> dict[str, Any]:
        found = dict(zip(_PARTITION, row, strict=False))
        found["leader"] = None if found["leader"] == -1 else found["leader"]
        return _marked(found, row[12])

    return TreeNode(value=value)


def _brokers(replay: KraftReplay) -> dict[str, TreeNode]:
    found = {}
    for row in replay.brokers():
        registered = json.loads(row[6])
        value = dict(zip(_BROKER, row, strict=False))
        value |= {
            "incarnation_id": registered.get("incarnationId"),
            "endpoints": registered.get("endPoints"),
            "features": registered.get("features"),
            "rack": registered.get("rack"),
        }
        found[str(row[0])] = _leaf(_marked(value, row[7]))
    return found


class _Facts:
    """All that is no row, by the place in the tree."""

    def __init__(self, replay: KraftReplay, show_secrets: bool) -> None:
        self._replay = replay
        self._show_secrets = show_secrets
        self._read: dict[str | int, list[tuple[dict[str, Any], Any]]] | None = None

    def _of(self, kind: str) -> list[tuple[dict[str, Any], Any]]:
        return self._all().get(kind, [])

    def _all(self) -> dict[str | int, list[tuple[dict[str, Any], Any]]]:
        if self._read is None:
            self._read = {}
            for kind, text, mark in self._replay.facts(show_secrets=self._show_secrets):
                self._read.setdefault(kind, []).append((json.loads(text), mark))
        return self._read

    def features(self) -> dict[str, TreeNode]:
        found = {}
        for data, mark in self._of("FEATURE_LEVEL_RECORD"):
            is_version = data["name"] == "metadata.version"
            name = "metadataVersion" if is_version else f"finalized_{data['name']}"
            found[name] = _leaf(_marked({"level": data["featureLevel"]}, mark))
        for data, mark in self._of("ZK_MIGRATION_STATE_RECORD"):
            found["zkMigrationState"] = _leaf(_marked(data, mark))
        return found

    def controllers(self) -> dict[str, TreeNode]:
        records = self._of("REGISTER_CONTROLLER_RECORD")
        return {str(data["controllerId"]): _leaf(_marked(data, mark)) for data, mark in records}

    def configs(self) -> dict[str, TreeNode]:
        found: dict[str, dict[str, TreeNode]] = {}
        for data, mark in self._of("CONFIG_RECORD"):
            kind = _RESOURCES.get(data["resourceType"], str(data["resourceType"]))
            name = f"{kind}:{data['resourceName']}" if data["resourceName"] else kind
            leaf = _leaf(_marked({"value": data["value"]}, mark))
            found.setdefault(name, {})[data["name"]] = leaf
        return {name: _directory(leaves) for name, leaves in found.items()}

    def quotas(self) -> dict[str, TreeNode]:
        found: dict[str, dict[str, TreeNode]] = {}
        for data, mark in self._of("CLIENT_QUOTA_RECORD"):
            leaf = _leaf(_marked({"value": data["value"]}, mark))
            found.setdefault(_entity(data["entity"]), {})[data["key"]] = leaf
        return {name: _directory(leaves) for name, leaves in found.items()}

    def producer_ids(self) -> dict[str, TreeNode]:
        records = self._of("PRODUCER_IDS_RECORD")
        return {"nextProducerId": _leaf(_marked(*records[0]))} if records else {}

    def acls(self) -> dict[str, TreeNode]:
        return self._by("ACCESS_CONTROL_ENTRY_RECORD", "id")

    def tokens(self) -> dict[str, TreeNode]:
        return self._by("DELEGATION_TOKEN_RECORD", "tokenId")

    def _by(self, kind: str, key: str) -> dict[str, TreeNode]:
        return {str(data[key]): _leaf(_marked(data, mark)) for data, mark in self._of(kind)}

    def scram(self) -> dict[str, TreeNode]:
        found: dict[str, dict[str, TreeNode]] = {}
        for data, mark in self._of("USER_SCRAM_CREDENTIAL_RECORD"):
            kind = _MECHANISMS.get(data["mechanism"], str(data["mechanism"]))
            found.setdefault(kind, {})[data["name"]] = _leaf(_marked(data, mark))
        return {name: _directory(leaves) for name, leaves in found.items()}

    def others(self) -> dict[str, TreeNode]:
        """What Kafka's shell does not show: the quorum's voters, and what is unknown here."""
        found: dict[str, TreeNode] = {}
        for kind, records in self._all().items():
            if kind not in _PLACED:
                leaves = {str(n): _leaf(_marked(*each)) for n, each in enumerate(records)}
                found[str(kind)] = _directory(leaves)
        return found


_PLACED = (
    *("FEATURE_LEVEL_RECORD", "ZK_MIGRATION_STATE_RECORD", "REGISTER_CONTROLLER_RECORD"),
    *("CONFIG_RECORD", "CLIENT_QUOTA_RECORD", "PRODUCER_IDS_RECORD", "DELEGATION_TOKEN_RECORD"),
    *("ACCESS_CONTROL_ENTRY_RECORD", "USER_SCRAM_CREDENTIAL_RECORD"),
)


def _entity(entity: Iterable[Mapping[str, Any]]) -> str:
    """Returns the name of a quota's entity as Kafka's shell writes it: clientId(c)_user(ann)."""
    pairs = [(_ENTITIES.get(e["entityType"], e["entityType"]), e["entityName"]) for e in entity]
    return "_".join(f"{kind}({_escaped(name or '')})" for kind, name in sorted(pairs))


def _escaped(name: str) -> str:
    return re.sub(r"([\\()])", r"\\\1", name)
