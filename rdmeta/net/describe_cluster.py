"""DescribeCluster (API key 60), v0-v2: the cluster's brokers, also the fenced ones (KIP-700, 1073).

v2 says which brokers are fenced. Metadata leaves these out; DescribeCluster lists them if the
request asks for them.
"""

from __future__ import annotations

from typing import NamedTuple

from rdmeta.errors import UnsupportedVersionError, from_code
from rdmeta.net.fields import FieldReader

DESCRIBE_CLUSTER = 60
LOWEST, HIGHEST = 0, 2

_BROKERS = b"\1"
_NOT_ASKED = -(2**31)


class ClusterBroker(NamedTuple):
    """A broker; `rack` is None without one, `is_fenced` is None before v2."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool | None


class ClusterDescription(NamedTuple):
    """A broker's answer.

    `controller_id` is None if there is none; on KRaft it is a random broker that is alive.
    `authorized_operations` is a bit field (KIP-430), None if it was not asked for.
    """

    throttle_ms: int
    cluster_id: str
    controller_id: int | None
    brokers: tuple[ClusterBroker, ...]
    authorized_operations: int | None


def encode_request(
    version: int, *, authorized_operations: bool = False, fenced: bool = False
) -> bytes:
    """Returns a request's body.

    Raises UnsupportedVersionError for a version that is unknown, or cannot ask for `fenced` brokers
    (v2 can).
    """
    _check(version)
    if fenced and version < 2:
        raise UnsupportedVersionError(
            f"DescribeCluster v{version} cannot ask for fenced brokers: v2 can"
        )
    body = bytes([authorized_operations])
    if version >= 1:
        body += _BROKERS
    if version >= 2:
        body += bytes([fenced])
    return body + b"\0"


def parse_response(body: bytes, version: int) -> ClusterDescription:
    """Returns a parsed response's body.

    Raises MalformedError, UnsupportedVersionError for an unknown version, and the Error of the code
    that the broker answers with.
    """
    _check(version)
    reader = FieldReader(body)
    throttle_ms = reader.int32()
    error, message = reader.int16(), reader.optional_string()
    if version >= 1:
        reader.int8()  # the kind of endpoints, which the request has chosen
    cluster_id, controller_id = reader.string(), reader.int32()
    brokers = reader.array(lambda each: _broker(each, version))
    operations = reader.int32()
    reader.skip_tags()
    reader.end()
    if error:
        raise from_code(error, message)
    return ClusterDescription(
        throttle_ms,
        cluster_id,
        None if controller_id < 0 else controller_id,
        brokers,
        None if operations == _NOT_ASKED else operations,
    )


def _broker(reader: FieldReader, version: int) -> ClusterBroker:
    broker = ClusterBroker(
        reader.int32(),
        reader.string(),
        reader.int32(),
        reader.optional_string(),
        bool(reader.int8()) if version >= 2 else None,
    )
    reader.skip_tags()
    return broker


def _check(version: int) -> None:
    if not LOWEST <= version <= HIGHEST:
        raise UnsupportedVersionError(
            f"DescribeCluster v{version} is unknown; v{LOWEST}-v{HIGHEST} are known"
        )
