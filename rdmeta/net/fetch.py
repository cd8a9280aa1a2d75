"""One refresh of a cache from a broker: fetch() tries servers in turn, under one time-out."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, NamedTuple, cast
from uuid import UUID

from rdmeta._core import (
    METADATA_MAX_VERSION,
    METADATA_MIN_VERSION,
    MetadataCache,
    _head_in,
    decode_metadata_response,
    encode_metadata_request,
)
from rdmeta.config.address import Address, parse_bootstrap
from rdmeta.errors import (
    AuthenticationError,
    ConfigError,
    Error,
    ForkedError,
    MissingExtraError,
    TransportError,
    UnsupportedVersionError,
)
from rdmeta.model import ALL, Advice, Applied, Broker, Request
from rdmeta.net import describe_cluster
from rdmeta.net.blocking_session import Connection, Deadline, Opening, Race
from rdmeta.net.handshake import METADATA
from rdmeta.net.resolve import FAMILIES
from rdmeta.net.security import Security, for_config

# The settings without a configuration, by their names in Config, and the Security.
_DEFAULTS: dict[str, Any] = {
    "bootstrap_servers": None,
    "client_id": "rdmeta",
    "max_frame": 100_000_000,
    "allow_auto_create": False,
    "family": "any",
    "setup_timeout": math.inf,
    "socket_timeout": math.inf,
    "protocol": "plaintext",
    "security": None,
}


# The versions of Metadata that say what the principal may do with the cluster. DescribeCluster says
# it since Kafka 2.8, which speaks a later version of Metadata.
_WITH_CLUSTER = range(8, 11)


class _Asked(NamedTuple):
    """What a request asks for beside its topics: the keywords of encode_metadata_request()."""

    allow_auto_create: bool
    topic_authorized_operations: bool
    cluster_authorized_operations: bool


class _FetchOptions(NamedTuple):
    """The settings of fetch() that apply to each connection and answer; times in seconds."""

    tolerate_trailing: bool | None
    client_id: str
    max_frame: int
    family: str
    setup_timeout: float
    socket_timeout: float
    security: Security | None


def fetch(
    cache: MetadataCache,
    bootstrap: str | None = None,
    topics: Collection[str] | Collection[UUID] | None = None,
    timeout: float = 10.0,
    *,
    conf: Mapping[str, object] | None = None,
    allow_auto_create: bool | None = None,
    tolerate_trailing: bool | None = None,
    client_id: str | None = None,
    max_frame: int | None = None,
    reason: str | None = None,
    operations: bool = False,
) -> Applied:
    """Asks a broker for metadata once and applies its answer to `cache`.

        rdmeta.fetch(cache, "localhost:9092")
        rdmeta.fetch(cache, conf={"bootstrap.servers": "localhost:9092"}, topics=["orders"])

    Returns the Applied of the last answer; its `changed` and `brokers_changed` cover all answers.
    `bootstrap` is "host:port[,host:port...]", with or without the protocol, as in
    PLAINTEXT://host:port. TLS and SASL come with `conf` (docs/security.md). fetch() tries the
    servers in turn until one gives an answer that the cache can apply. A server that is silent for
    250 ms while it is connected to, or for 1 s in a login, is no reason to wait: the next one is
    tried beside it, and the first that is ready is asked (RFC 8305). A wrong setting, or a login
    that two servers refuse alike, ends that: the others are not tried. The cache may want a second
    opinion (Advice.ASK_OTHER): then fetch() asks the next server as well. After the last one it
    asks the brokers that the cache knows. It asks each once, until an answer has no such advice.

    `topics` are names or ids (uuid.UUID; Kafka's base64 could be a name). An empty list asks only
    for the brokers; None asks for every topic. `timeout`, in seconds, covers everything except name
    resolution. `max_frame` is the largest answer accepted, in bytes. `reason` says why the caller
    asks: see `MetadataCache.reason`.

    `conf` is a configuration as a Client takes it, and is checked as a whole. It completes the
    arguments: bootstrap.servers, client.id ("rdmeta"), receive.message.max.bytes (100 000 000) and
    allow.auto.create.topics (false). Its broker.address.family chooses addresses.
    socket.connection.setup.timeout.ms bounds connecting to one server, and socket.timeout.ms the
    wait for one answer, both within `timeout`. Those of TLS and SASL count, too; callables among
    them are called in this thread. The other options do not concern one refresh.

    With `operations` it also asks what the principal may do (KIP-430, Kafka 2.3): `operations` of
    each Topic, and `cluster_operations` of the Applied, are bit fields for operation_names(). The
    latter is None if the broker speaks no API that tells it.

    A broker does not create the topics in a request unless `allow_auto_create`. A request to a
    broker before 0.11 (Metadata v4) cannot forbid it, so fetch() sends names there only with that.
    librdkafka's mock brokers end flexible answers with one extra byte. It is accepted if the answer
    to ApiVersions identifies a mock broker, or as `tolerate_trailing` says.

    Raises TransportError, TlsError, AuthenticationError, RequestTimedOutError, MalformedError,
    UnsupportedVersionError, or an error of `MetadataCache.apply`. Its text gives the error of
    each server; if those have several types, it is a TransportError. Before it sends anything, it
    raises ForkedError in the child of a fork, and TypeError or ValueError for an invalid argument.
    An error in `conf`, or an argument that contradicts it, is a ConfigError. An error that is
    raised after `topics` were checked ends the hints of `topics`.
    """
    if not isinstance(cache, MetadataCache):
        raise TypeError(f"cache must be a MetadataCache, not {type(cache).__name__}")
    wanted = ALL if topics is None else _checked(topics)
    try:
        request = cache.request(wanted, reason=reason)
    except ForkedError:
        raise ForkedError(
            "the child of a fork cannot write to its parent's cache; make a new MetadataCache"
        ) from None
    try:
        given = {
            "bootstrap_servers": bootstrap,
            "client_id": client_id,
            "max_frame": max_frame,
            "allow_auto_create": allow_auto_create,
        }
        settings = _settings(conf, {k: v for k, v in given.items() if v is not None})
        request = request._replace(
            allow_auto_create=settings["allow_auto_create"], topic_authorized_operations=operations
        )
        servers = parse_bootstrap(settings["bootstrap_servers"], settings["protocol"])
        shared = {name: settings[name] for name in _FetchOptions._fields if name in settings}
        options = _FetchOptions(tolerate_trailing, **shared)
        return _ask_in_turn(cache, servers, request, Deadline(timeout), options)
    except BaseException:
        cache.apply_failure(request)
        raise


def _settings(conf: Mapping[str, object] | None, given: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings of `conf` and of the arguments that were given, by names of Config.

    Raises ConfigError.
    """
    if conf is None:
        return _DEFAULTS | given
    from rdmeta import config  # only calls with `conf` pay for its import
    from rdmeta.config.option_table import OPTIONS

    parsed = config.parse(conf, servers="bootstrap_servers" not in given)
    said = {option.field: option for option in OPTIONS if {option.key, option.alias} & set(conf)}
    for name, value in given.items():
        theirs = getattr(parsed, name)
        if name in said and value != theirs:
            raise ConfigError(
                f"{said[name].key} is {theirs!r} in conf, and {value!r} as an argument: give one"
            )
    found = {name: getattr(parsed, name) for name in _DEFAULTS if name != "security"} | given
    found["security"] = for_config(parsed)
    return found


def _checked(
    topics: Collection[str] | Collection[UUID],
) -> tuple[str, ...] | tuple[UUID, ...]:
    """Returns the topics as a tuple; raises TypeError, ValueError if no request can name them."""
    wanted = topics if isinstance(topics, str) else tuple(topics)
    encode_metadata_request(METADATA_MAX_VERSION, cast("tuple[str, ...]", wanted))
    return cast("tuple[str, ...] | tuple[UUID, ...]", wanted)


def _ask_in_turn(
    cache: MetadataCache,
    servers: list[Address],
    request: Request,
    deadline: Deadline,
    options: _FetchOptions,
) -> Applied:
    """Asks one server after the other until an answer needs no second opinion.

    If an answer carries ASK_OTHER, the brokers in the cache follow the remaining servers. Raises
    an error that names each server.
    """
    failures: list[tuple[Address, Error]] = []
    answers: list[Applied] = []
    known = set(servers)
    answered: set[int] = set()
    with Race(partial(_begin, deadline, options), servers) as race:
        while (outcome := race.next()) is not None:
            server, found = outcome
            try:
                if isinstance(found, Error):
                    raise found
                with found:
                    broker, applied = _ask(cache, server, found, request, deadline, options)
            except Error as error:
                failures.append((server, without_frames(error)))
                if is_in_vain([each for _, each in failures]):
                    break
                ask_other = error.applied is not None and Advice.ASK_OTHER in error.applied.advice
            else:
                answers.append(applied)
                answered |= set() if broker is None else {broker}
                ask_other = Advice.ASK_OTHER in applied.advice
                if not ask_other:
                    break
            if ask_other:
                others = [Address(b.host, b.port) for b in cache.brokers if b.id not in answered]
                race.add(each for each in dict.fromkeys(others) if each not in known)
                known |= set(others)
            if answers and not deadline.left():
                break
        untried = len(race)
    if not answers:
        raise _summary(failures, untried)
    return answers[-1]._replace(
        changed=sum(each.changed for each in answers),
        brokers_changed=any(each.brokers_changed for each in answers),
    )


def _begin(deadline: Deadline, options: _FetchOptions, server: Address) -> Opening:
    return Connection.opening(
        server,
        deadline.within(options.setup_timeout),
        options.client_id,
        options.max_frame,
        FAMILIES[options.family],
        options.security,
    )


def _ask(
    cache: MetadataCache,
    server: Address,
    connection: Connection,
    request: Request,
    deadline: Deadline,
    options: _FetchOptions,
) -> tuple[int | None, Applied]:
    """Asks, and applies the answer.

    Returns the broker's id, None if it is not known, and the Applied.
    """
    session = connection.session
    version = session.version_for(METADATA, METADATA_MIN_VERSION, METADATA_MAX_VERSION)
    asked = _Asked(
        request.allow_auto_create,
        request.topic_authorized_operations,
        request.topic_authorized_operations and version in _WITH_CLUSTER,
    )
    body = encode_metadata_request(version, request.topics, **asked._asdict())
    operations = None
    if asked.topic_authorized_operations and not asked.cluster_authorized_operations:
        operations = _cluster_operations(connection, deadline.within(options.socket_timeout))
    request = cache.request(request.topics, reason=request.reason, **asked._asdict())
    until = deadline.within(options.socket_timeout)
    answer = connection.request(METADATA, version, body, until)
    tolerate = options.tolerate_trailing
    trailing = session.is_librdkafka_mock if tolerate is None else tolerate
    broker = _broker_at(server, _head_in(answer, version)[1], cache.brokers)
    applied = cache.apply(answer, version, request, broker, tolerate_trailing=trailing)
    if asked.cluster_authorized_operations:
        found = decode_metadata_response(answer, version, tolerate_trailing=trailing)
        operations = found["operations"]
    return broker, applied._replace(cluster_operations=operations)


def _cluster_operations(connection: Connection, deadline: Deadline) -> int | None:
    """Asks what the principal may do with the cluster, where Metadata does not say it.

    Returns None if the broker has no DescribeCluster, as a mock broker has not.
    """
    try:
        version = connection.session.version_for(
            describe_cluster.DESCRIBE_CLUSTER, describe_cluster.LOWEST, describe_cluster.HIGHEST
        )
    except UnsupportedVersionError:
        return None
    body = describe_cluster.encode_request(version, authorized_operations=True)
    answer = connection.request(describe_cluster.DESCRIBE_CLUSTER, version, body, deadline)
    return describe_cluster.parse_response(answer, version).authorized_operations


def _broker_at(server: Address, *tables: tuple[Broker, ...]) -> int | None:
    """Returns the id of the one broker at that address in the first table that has the address.

    None if no table has it, as for a load balancer, or if several brokers share the address.
    """
    for table in tables:
        found = [broker.id for broker in table if Address(broker.host, broker.port) == server]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def without_frames(error: Error) -> Error:
    """Returns the error without tracebacks, whose frames keep the secrets that were sent."""
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = None
        each = each.__cause__ or each.__context__
    return error


def is_in_vain(errors: list[Error]) -> bool:
    """Returns whether the last error says that the servers that follow would fail, too.

    A wrong configuration fails before it meets a server. A login that two servers refuse alike is
    wrong on all of them, and more attempts could lock the account. One server alone may be behind
    the others, as after a change of the password.
    """
    last = errors[-1]
    if last.retriable:
        return False
    if isinstance(last, (ConfigError, MissingExtraError)):
        return True
    refused = [each for each in errors if isinstance(each, AuthenticationError)]
    cause = last.code or str(last)
    return last in refused and sum((each.code or str(each)) == cause for each in refused) > 1


def _summary(failures: list[tuple[Address, Error]], untried: int) -> Error:
    """Returns one error that names each server; its type is the shared one, or TransportError.

    The error is retriable if the error of any server is. It says how many servers are untried.
    """
    text = "; ".join(f"{server}: {error}" for server, error in failures)
    if untried:
        text += f"; {untried} more server{'s were' if untried > 1 else ' was'} not tried"
    last = failures[-1][1]
    retriable = any(error.retriable for _, error in failures)
    kinds = {type(error) for _, error in failures}
    if len(kinds) == 1:
        summary = kinds.pop()(text, last.code, retriable)
        summary.applied = last.applied
    else:
        summary = TransportError(text, retriable=retriable)
    summary.__cause__ = last
    return summary
