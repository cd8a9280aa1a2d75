"""One refresh of a cache from a broker."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, cast
from uuid import UUID

from rdmeta._core import (
    METADATA_MAX_VERSION,
    METADATA_MIN_VERSION,
    MetadataCache,
    _brokers_in,
    encode_metadata_request,
)
from rdmeta.errors import Error, ForkedError, TransportError
from rdmeta.model import ALL, Advice, Applied, Broker, Request
from rdmeta.net.address import Address, parse_bootstrap
from rdmeta.net.blocking import Connection, Deadline
from rdmeta.net.session import METADATA

__all__ = ["fetch"]


class _Options(NamedTuple):
    """The arguments of fetch() that concern each connection and answer."""

    tolerate_trailing: bool | None
    client_id: str
    max_frame: int


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

    `bootstrap` is "host:port[,host:port...]", with PLAINTEXT:// or without; servers are tried in
    turn until one gives an answer that can be applied. The cache may doubt an answer
    (Advice.ASK_OTHER): then the next server is asked as well, and after the last one the brokers
    that the cache was told of. Each is asked once, until an answer is not doubted. The result is of
    the last answer, but `changed` and `brokers_changed` are of all answers.

    `topics` are names or ids (uuid.UUID, not Kafka's base64, which could be a name as well), none
    of them for the broker list alone, None for every topic. `timeout`, in seconds, covers
    everything but name resolution; while servers are left to try, connecting to one gets no more
    than its share. `max_frame` bounds an answer, in bytes. `reason` is why: see
    `MetadataCache.reason`.

    Brokers do not create topics for being asked unless `allow_auto_create`; those before 0.11
    (Metadata v4) cannot be told, so names are asked of them only with it. librdkafka's mock brokers
    end flexible answers with a byte too many: it is let pass where the answer to ApiVersions shows
    that it is them, or as `tolerate_trailing` says.

    TransportError, RequestTimedOutError, MalformedError, UnsupportedVersionError, or what
    `MetadataCache.apply` raises, with what each server went wrong with; a TransportError if they
    differ. Before anything is sent: ForkedError in the child of a fork; TypeError and ValueError
    for what is no cache, bootstrap list, topics, or time-out. Whatever is raised once they are
    known, the hints of `topics` are over then.
    """
    if not isinstance(cache, MetadataCache):
        raise TypeError(f"cache must be a MetadataCache, not {type(cache).__name__}")
    wanted = ALL if topics is None else _checked(topics)
    try:
        MetadataCache.hint(cache, ())  # of no topic: it tells whether this process may write
    except ForkedError:
        raise ForkedError(
            "the child of a fork cannot write to its parent's cache; make a new MetadataCache"
        ) from None
    request = cache.request(wanted, allow_auto_create=allow_auto_create, reason=reason)
    try:
        servers, deadline = parse_bootstrap(bootstrap), Deadline(timeout)
        options = _Options(tolerate_trailing, client_id, max_frame)
        return _asked_in_turn(cache, servers, request, deadline, options)
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


def _asked_in_turn(
    cache: MetadataCache,
    servers: list[Address],
    request: Request,
    deadline: Deadline,
    options: _Options,
) -> Applied:
    """Ask one server after the other until an answer needs no other; the error names each server.

    Where an answer is doubted, the brokers that it told of follow the servers that are left.
    """
    failures: list[tuple[Address, Error]] = []
    answers: list[Applied] = []
    asked: set[Address] = set()
    named: set[int] = set()
    while servers:
        share = len(servers)
        server = servers.pop(0)
        asked.add(server)
        try:
            within = deadline.within(deadline.remaining() / share)
            broker, applied = _ask(cache, server, request, within, deadline, options)
        except Error as error:
            failures.append((server, error))
            doubted = error.applied is not None and Advice.ASK_OTHER in error.applied.advice
        else:
            answers.append(applied)
            named |= set() if broker is None else {broker}
            doubted = Advice.ASK_OTHER in applied.advice
            if not doubted:
                break
        if doubted:
            told = [Address(b.host, b.port) for b in cache.brokers if b.id not in named]
            servers += [each for each in told if each not in asked and each not in servers]
        if answers and not deadline.left():
            break
    if not answers:
        raise _summary(failures)
    return answers[-1]._replace(
        changed=sum(each.changed for each in answers),
        brokers_changed=any(each.brokers_changed for each in answers),
    )


def _ask(
    cache: MetadataCache,
    server: Address,
    request: Request,
    within: Deadline,
    deadline: Deadline,
    options: _Options,
) -> tuple[int | None, Applied]:
    """Connect `within` a time and apply an answer: the id of the broker if known, what it did."""
    with Connection(server, within, options.client_id, options.max_frame) as connection:
        session = connection.session
        version = session.version_for(METADATA, METADATA_MIN_VERSION, METADATA_MAX_VERSION)
        body = encode_metadata_request(
            version, request.topics, allow_auto_create=request.allow_auto_create
        )
        request = cache.request(
            request.topics, allow_auto_create=request.allow_auto_create, reason=request.reason
        )
        answer = connection.request(METADATA, version, body, deadline)
    tolerate = options.tolerate_trailing
    broker = _broker_at(server, _brokers_in(answer, version), cache.brokers)
    return broker, cache.apply(
        answer,
        version,
        request,
        broker,
        tolerate_trailing=session.is_librdkafka_mock if tolerate is None else tolerate,
    )


def _broker_at(server: Address, *tables: tuple[Broker, ...]) -> int | None:
    """The id of the one broker at that address in the first table that has it; None for none.

    A load balancer is no broker, and where several brokers share an address none is meant.
    """
    for table in tables:
        found = [broker.id for broker in table if Address(broker.host, broker.port) == server]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _summary(failures: list[tuple[Address, Error]]) -> Error:
    """One error that names each server: of the kind they share, otherwise a TransportError.

    It is retriable if that of any server is.
    """
    told = "; ".join(f"{server}: {error}" for server, error in failures)
    last = failures[-1][1]
    retriable = any(error.retriable for _, error in failures)
    kinds = {type(error) for _, error in failures}
    if len(kinds) == 1:
        summary = kinds.pop()(told, last.code, retriable)
        summary.applied = last.applied
    else:
        summary = TransportError(told, retriable=retriable)
    summary.__cause__ = last
    return summary
