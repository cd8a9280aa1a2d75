"""One refresh of a cache from a broker."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast
from uuid import UUID

from rdmeta._core import (
    METADATA_MAX_VERSION,
    METADATA_MIN_VERSION,
    MetadataCache,
    encode_metadata_request,
)
from rdmeta.errors import Error, TransportError
from rdmeta.model import ALL, Applied, Request
from rdmeta.net.address import Address, parse_bootstrap
from rdmeta.net.blocking import Connection, Deadline
from rdmeta.net.session import METADATA

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
    reason: str | None = None,
) -> Applied:
    """Ask a broker for metadata once and apply its answer to `cache`.

    `bootstrap` is "host:port[,host:port...]"; servers are tried in turn until one gives an answer
    that can be applied. `topics` are names or ids (uuid.UUID, not Kafka's base64, which could be a
    name as well), none of them for the broker list alone, None for
    every topic. `timeout`, in seconds, covers everything but name resolution; while servers are
    left to try, connecting to one gets no more than its share. `max_frame` bounds an answer, in
    bytes. `reason` is why: see `MetadataCache.reason`.

    Brokers do not create topics for being asked unless `allow_auto_create`; those before 0.11
    (Metadata v4) cannot be told, so names are asked of them only with it. librdkafka's mock brokers
    end flexible answers with a byte too many: it is let pass where the answer to ApiVersions shows
    that it is them, or as `tolerate_trailing` says.

    TransportError, RequestTimedOutError, MalformedError, UnsupportedVersionError, or what
    `MetadataCache.apply` raises, with what each server went wrong with; a TransportError if they
    differ. TypeError and ValueError, before anything is sent: no cache, bootstrap list, topics, or
    time-out. Whatever is raised once they are known, the hints of `topics` are over then.
    """
    if not isinstance(cache, MetadataCache):
        raise TypeError(f"cache must be a MetadataCache, not {type(cache).__name__}")
    wanted = ALL if topics is None else _checked(topics)
    request = cache.request(wanted, allow_auto_create=allow_auto_create, reason=reason)
    try:
        servers, deadline = parse_bootstrap(bootstrap), Deadline(timeout)
        return _first_answer(
            cache, servers, request, deadline, tolerate_trailing, client_id, max_frame
        )
    except BaseException:
        cache.apply_failure(request)
        raise


def _checked(
    topics: Collection[str] | Collection[UUID],
) -> tuple[str, ...] | tuple[UUID, ...]:
    """Topics to be read more than once; TypeError, ValueError for what no request can name."""
    wanted = topics if isinstance(topics, str) else tuple(topics)
    encode_metadata_request(METADATA_MAX_VERSION, cast("tuple[str, ...]", wanted))
    return cast("tuple[str, ...] | tuple[UUID, ...]", wanted)


def _first_answer(
    cache: MetadataCache,
    servers: list[Address],
    request: Request,
    deadline: Deadline,
    tolerate_trailing: bool | None,
    client_id: str,
    max_frame: int,
) -> Applied:
    """Try one server after the other; the error names each that failed."""
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
