"""`rdmeta log info`: what the files of a metadata log have, what is proven, and who led when."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from rdmeta._core import KraftReplay, kraft_records
from rdmeta.cli.log_opening import LogRequest, furthest
from rdmeta.cli.messages import FINE
from rdmeta.cli.output import Table, TableColumn, json_text
from rdmeta.kraft import NodeLog, find_nodes, looked_at, proof_of, replayed
from rdmeta.kraft.scanning import BatchHead, batch_heads

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LOG = (
    TableColumn("cluster_id"),
    TableColumn("first", "integer"),
    TableColumn("last", "integer"),
    TableColumn("first_time", "time"),
    TableColumn("last_time", "time"),
    TableColumn("proven_to", "integer"),
    TableColumn("proven_by"),
)
_NODES = (
    TableColumn("node", "integer"),
    TableColumn("roles", "texts"),
    TableColumn("first", "integer"),
    TableColumn("last", "integer"),
    TableColumn("last_time", "time"),
    TableColumn("epoch", "integer"),
    TableColumn("leader", "integer"),
    TableColumn("voted", "integer"),
    TableColumn("directory"),
)
_FILES = (
    TableColumn("node", "integer"),
    TableColumn("file"),
    TableColumn("kind"),
    TableColumn("bytes", "integer"),
    TableColumn("used", "flag"),
    TableColumn("why_not"),
)
_VOTERS = (
    TableColumn("voter", "integer"),
    TableColumn("directory_id"),
    TableColumn("endpoints", "texts"),
)
_EPOCHS = (
    TableColumn("epoch", "integer"),
    TableColumn("leader", "integer"),
    TableColumn("first", "integer"),
    TableColumn("last", "integer"),
    TableColumn("began", "time"),
    TableColumn("ended", "time"),
    TableColumn("elected_by", "integers"),
    TableColumn("none_led_s", "number"),
)


def answer(request: LogRequest) -> int:
    """Prints what there is."""
    logs = [looked_at(each) for each in find_nodes(request.arguments)]
    found = _found(logs)
    for log in logs:
        for fault in (*log.files.faults, *log.scan.faults):
            request.messages.note(fault)
    if request.output.form == "json":
        head = {"version": 1, "command": "log", "word": "info"}
        request.output.json([json_text({**head, **found})])
        return FINE
    parts = {"nodes": _NODES, "files": _FILES, "voters": _VOTERS, "epochs": _EPOCHS}
    request.output.tables(
        _table(_LOG, [found]), *(_table(columns, found[name]) for name, columns in parts.items())
    )
    return FINE


def _table(columns: Sequence[TableColumn], rows: Sequence[Mapping[str, Any]]) -> Table:
    return Table(columns, ([row[column.name] for column in columns] for row in rows))


def _found(logs: Sequence[NodeLog]) -> dict[str, Any]:
    log = furthest(logs)
    proof, runs = proof_of(logs), log.scan.runs
    replay = replayed(log).replay
    epochs = _epochs(log)
    voters = _voters(replay, epochs)
    ids = [voter["voter"] for voter in voters]
    brokers = [row[0] for row in replay.brokers()]
    return {
        "cluster_id": next((each.files.cluster_id for each in logs if each.files.cluster_id), None),
        "first": runs[-1].start if runs else None,
        "last": runs[-1].end - 1 if runs else None,
        "first_time": _time(runs[-1].first_ms) if runs else None,
        "last_time": _time(runs[-1].last_ms) if runs else None,
        "proven_to": proof.end,
        "proven_by": proof.by,
        "partial": replay.info()["partial"],
        "nodes": [_node(each, ids, brokers) for each in logs],
        "files": [file for each in logs for file in _files(each)],
        "voters": voters,
        "epochs": [{key: each[key] for key in each if key != "voters"} for each in epochs],
    }


def _time(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


def _node(log: NodeLog, voters: Sequence[int], brokers: Sequence[int]) -> dict[str, Any]:
    files, runs, quorum = log.files, log.scan.runs, log.files.quorum
    is_known = files.node is not None
    roles = ["voter"] * (files.node in voters) + ["broker"] * (files.node in brokers)
    return {
        "node": files.node,
        "roles": tuple(roles or ["observer"]) if is_known else (),
        "first": runs[-1].start if runs else None,
        "last": runs[-1].end - 1 if runs else None,
        "last_time": _time(runs[-1].last_ms) if runs else None,
        "epoch": quorum.epoch if quorum else None,
        "leader": quorum.leader if quorum else None,
        "voted": quorum.voted if quorum else None,
        "directory_id": files.directory_id,
        "directory": str(files.directory),
        "faults": [*files.faults, *log.scan.faults],
    }


def _files(log: NodeLog) -> Iterator[dict[str, Any]]:
    whys = {use.file.path: use.why_not for use in log.snapshots}
    for file in (*log.files.segments, *log.files.snapshots):
        why_not = whys.get(file.path)
        yield {
            "node": log.files.node,
            "file": file.path.name,
            "kind": "snapshot" if file.path in whys else "segment",
            "bytes": file.path.stat().st_size,
            "used": why_not is None,
            "why_not": why_not,
        }


def _voters(replay: KraftReplay, epochs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the voters by the state, or by the last leader's election."""
    controllers = {}
    for kind, text, _ in replay.facts():
        data = json.loads(text)
        if kind == "KRAFT_VOTERS":
            return [_voter(each, each["endpoints"]) for each in data["voters"]]
        if kind == "REGISTER_CONTROLLER_RECORD":
            controllers[data["controllerId"]] = data["endPoints"]
    known = [each["voters"] for each in epochs if each["voters"]][-1:]
    voters = [each for voters in known for each in voters]
    return [_voter(each, controllers.get(each["voterId"], ())) for each in voters]


def _voter(data: Mapping[str, Any], ends: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "voter": data["voterId"],
        "directory_id": data.get("voterDirectoryId"),
        "endpoints": tuple(f"{each['name']}://{each['host']}:{each['port']}" for each in ends),
    }


def _epochs(log: NodeLog) -> list[dict[str, Any]]:
    """Returns each epoch of a log: its leader, by whom it was elected, its offsets and times."""
    found: list[dict[str, Any]] = []
    for segment in log.files.segments:
        for head in batch_heads(segment.path, []):
            time = _time(head.time_ms)
            if not found or found[-1]["epoch"] != head.epoch:
                unled = (time - found[-1]["ended"]).total_seconds() if found else None
                found.append(
                    {
                        "epoch": head.epoch,
                        "leader": None,
                        "first": head.base,
                        "began": time,
                        "elected_by": (),
                        "voters": [],
                        "none_led_s": unled,
                    }
                )
            if head.is_control:
                found[-1].update(_election(segment.path, head))
            found[-1].update(last=head.last, ended=time)
    return found


def _election(path: Path, head: BatchHead) -> dict[str, Any]:
    """Returns what a control batch says about an election."""
    with path.open("rb") as file:
        file.seek(head.at)
        records = kraft_records(file.read(head.size))
    for _, _, _, kind, _, text in records:
        if kind == "LEADER_CHANGE":
            data = json.loads(text)
            granted = (each["voterId"] for each in data.get("grantingVoters", ()))
            return {
                "leader": data["leaderId"],
                "elected_by": tuple(sorted(granted)),
                "voters": data["voters"],
            }
    return {}
