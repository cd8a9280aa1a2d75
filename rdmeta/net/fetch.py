"""One refresh of a cache from a broker."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING
from uuid import UUID

from rdmeta._core import METADATA_MAX_VERSION, METADATA_MIN_VERSION, encode_metadata_request
from rdmeta.errors import Error, TransportError
from rdmeta.model import ALL, Applied, Request
from rdmeta.net.address import Address, parse_bootstrap
from rdmeta.net.blocking import Connection, Deadline
from rdmeta.net.session import METADATA

if TYPE_CHECKING:
    from rdmeta._core import MetadataCache

__all__ = ["fetch"]


def fetch(
    cache: MetadataCache,
    bootstrap: str,
    topics: Collection[str] | Collection[UUID] | None = None,
    timeout: float = 10.0,
    *,
    allow_auto_create: bool = False,
    tolerate_trailing: bool | None = None,
    client_id: str = "rdmeta",
    max_frame: int = 100_000_000,
) -> Applied:
    """Ask a broker for metadata once and apply its answer to `cache`.

    `bootstrap` is "host:port[,host:port...]"; servers are tried in turn until one gives an answer
    that can be applied. `topics` are names or ids, none of them for the broker list alone, None for
    every topic. `timeout`, in seconds, covers everything but name resolution; while servers are
    left to try, connecting to one gets no more than its share. `max_frame` bounds an answer, in
    bytes.

    Brokers do not create topics for being asked unless `allow_auto_create`; those before 0.11
    (Metadata v4) cannot be told, so names are asked of them only with it. librdkafka's mock brokers
    end flexible answers with a byte too many: it is let pass where the answer to ApiVersions shows
    that it is them, or as `tolerate_trailing` says.

    TransportError, RequestTimedOutError, MalformedError, UnsupportedVersionError, or what
    `MetadataCache.apply` raises, with what each server went wrong with; a TransportError if they
    differ. The hints of `topics` are over then. ValueError: not a bootstrap list.
    """
    wanted = ALL if topics is None else topics
    request = Request(wanted, allow_auto_create, sent_version=cache.version)
    servers = parse_bootstrap(bootstrap)
    deadline = Deadline(timeout)
    failures: list[tuple[Address, Error]] = []
    for untried, server in zip(range(len(servers), 0, -1), servers, strict=True):
        try:
            share = deadline.within(deadline.remaining() / untried)
            with Connection(server, share, client_id, max_frame) as connection:
                version, answer = _ask(connection, request, deadline)
                mock = connection.session.is_librdkafka_mock
            return cache.apply(
                answer,
                version,
                request,
                _broker_at(cache, server),
                tolerate_trailing=mock if tolerate_trailing is None else tolerate_trailing,
            )
        except Error as error:
            failures.append((server, error))
    cache.apply_failure(request)
    raise _summary(failures)


def _ask(connection: Connection, request: Request, deadline: Deadline) -> tuple[int, bytes]:
    """The version that was spoken, and the answer's body."""
    version = connection.session.version_for(METADATA, METADATA_MIN_VERSION, METADATA_MAX_VERSION)
    body = encode_metadata_request(
        version, request.topics, allow_auto_create=request.allow_auto_create
    )
    return version, connection.request(METADATA, version, body, deadline)


def _broker_at(cache: MetadataCache, server: Address) -> int | None:
    """Which broker this is, if the cache has seen one at that address; a load balancer is none."""
    return next((b.id for b in cache.brokers if Address(b.host, b.port) == server), None)


def _summary(failures: list[tuple[Address, Error]]) -> Error:
    """One error that names each server: of the kind they share, otherwise a TransportError."""
    told = "; ".join(f"{server}: {error}" for server, error in failures)
    last = failures[-1][1]
    kinds = {type(error) for _, error in failures}
    if len(kinds) == 1:
        summary = kinds.pop()(told, last.code, last.retriable)
        summary.applied = last.applied
    else:
        summary = TransportError(told)
    summary.__cause__ = last
    return summary
