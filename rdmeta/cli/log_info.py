"""`rdmeta log info`: what the files of a metadata log have, what is proven, and who led when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rdmeta._moments import nearest_moment
from rdmeta.cli.log_opening import LogRequest, doubts
from rdmeta.cli.messages import FINE
from rdmeta.cli.output import Table, TableColumn, columns
from rdmeta.kraft import KraftLog, KraftState, LogEpoch, NodeLog
from rdmeta.kraft.log_files import size_of

_LOG = columns(
    "cluster_id first:integer last:integer first_time:time last_time:time proven_to:integer "
    "proven_by"
)
_NODES = columns(
    "node:integer roles:texts first:integer last:integer last_time:time epoch:integer "
    "leader:integer voted:integer directory"
)
_FILES = columns("node:integer file kind bytes:integer used:flag why_not")
_VOTERS = columns("voter:integer directory_id endpoints:texts")
_EPOCHS = columns(
    "epoch:integer leader:integer first:integer last:integer began:time ended:time "
    "elected_by:integers none_led_s:number"
)


def answer(request: LogRequest) -> int:
    """Prints what there is."""
    log = request.log(request.arguments)
    state = log.state()
    faults = [fault for node in log.nodes for fault in (*node.files.faults, *node.scan.faults)]
    for fault in faults:
        request.messages.note(fault)
    doubts(request.messages, log, 0, [each for each in state.faults if each not in faults])
    found = _summary(log, state)
    parts = {"nodes": _NODES, "files": _FILES, "voters": _VOTERS, "epochs": _EPOCHS}
    tables = [_table(columns, found[name]) for name, columns in parts.items()]
    request.answer(found, _table(_LOG, [found]), *tables)
    return FINE


def _table(columns: Sequence[TableColumn], rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(columns, ([row[column.name] for column in columns] for row in rows))


def _summary(log: KraftLog, state: KraftState) -> dict[str, Any]:
    epochs = log.epochs
    voters = _voters(log, state)
    ids = [voter["voter"] for voter in voters]
    return {
        "cluster_id": log.cluster_id,
        "first": epochs[0].first if epochs else None,
        "last": epochs[-1].last if epochs else None,
        "first_time": epochs[0].began if epochs else None,
        "last_time": epochs[-1].ended if epochs else None,
        "proven_to": log.proof.end,
        "proven_by": log.proof.by,
        "partial": state.partial,
        "nodes": [_node(node, ids, state) for node in log.nodes],
        "files": [file for node in log.nodes for file in _files(node)],
        "voters": voters,
        "epochs": list(map(_epoch, epochs)),
    }


def _node(log: NodeLog, voters: Sequence[int], state: KraftState) -> dict[str, Any]:
    files, quorum = log.files, log.files.quorum
    roles = ["voter"] * (files.node in voters) + ["broker"] * (files.node in state.brokers)
    runs = log.scan.runs
    return {
        "node": files.node,
        "roles": tuple(roles or ["observer"]) if files.node is not None else (),
        "first": log.start if runs else None,
        "last": log.end - 1 if runs else None,
        "last_time": nearest_moment(1000 * runs[-1].last_ms) if runs else None,
        "epoch": quorum.epoch if quorum else None,
        "leader": quorum.leader if quorum else None,
        "voted": quorum.voted if quorum else None,
        "directory_id": files.directory_id,
        "directory": str(files.directory),
    }


def _files(log: NodeLog) -> Iterator[dict[str, Any]]:
    whys = {use.file.path: use.why_not for use in log.snapshots}
    paths = [each.path for each in log.files.segments]
    paths += [each.path for each in log.files.snapshots]
    for path in paths:
        yield {
            "node": log.files.node,
            "file": path.name,
            "kind": "snapshot" if path in whys else "segment",
            "bytes": size_of(path),
            "used": whys.get(path) is None,
            "why_not": whys.get(path),
        }


def _voters(log: KraftLog, state: KraftState) -> list[dict[str, Any]]:
    """Returns the voters by the state, by the last leader's election, or by a quorum-state."""
    for fact in state.facts("voters"):
        return [
            _voter(each["voterId"], each["voterDirectoryId"], each["endpoints"])
            for each in fact.data["voters"]
        ]
    ends = {
        fact.data["controllerId"]: fact.data["endPoints"] for fact in state.facts("controllers")
    }
    noted = (node.files.quorum.voters for node in log.nodes if node.files.quorum)
    known = (*(each.voters for each in reversed(log.epochs)), *noted)
    voters = next(filter(None, known), ())
    return [_voter(each, None, ends.get(each, ())) for each in voters]


def _voter(voter: int, directory: str | None, ends: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    listed = tuple(f"{each['name']}://{each['host']}:{each['port']}" for each in ends)
    return {"voter": voter, "directory_id": directory, "endpoints": listed}


def _epoch(epoch: LogEpoch) -> dict[str, Any]:
    us = epoch.leaderless_us
    return {
        "epoch": epoch.epoch,
        "leader": epoch.leader,
        "first": epoch.first,
        "last": epoch.last,
        "began": epoch.began,
        "ended": epoch.ended,
        "elected_by": tuple(sorted(epoch.granted)),
        "none_led_s": None if us is None else us / 1e6,
    }
