"""The table of the client's options: names, types, ranges, defaults, and what each does.

`rdmeta.config` checks a configuration against it, tools/options_page.py writes docs/options.md from
it, and tests/test_options.py compares it with librdkafka's own table. The names, ranges and
defaults are librdkafka's; an option that librdkafka lacks says where it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["LIBRDKAFKA", "LONGEST_TEXT", "NOT_NEEDED", "OPTIONS", "SECURITY", "Option", "allowed"]

LIBRDKAFKA = "librdkafka"
JAVA = "Java's producer"
OURS = "rdmeta"

LONGEST_TEXT = 32767
"""The bytes of text that the header of a request can hold."""

_INT32_MAX = 2147483647


class Option(NamedTuple):
    """An option of the client. `default`, `lowest`, `highest` and `never` are in its unit."""

    key: str
    kind: str  # servers, text, integer, flag, choice or patterns
    field: str  # of rdmeta.config.Config; "" if Config does not need it
    default: Any
    importance: str  # high, medium or low
    doc: str
    lowest: int = 0
    highest: int = 0
    never: tuple[int, ...] = ()  # integers that stand for "never", or "without limit"
    unit: str = ""
    choices: Mapping[str, object] = {}
    default_doc: str = ""  # how the default is computed from other options
    hint: str = ""  # what an error adds for a value that is not allowed
    alias: str = ""
    origin: str = LIBRDKAFKA


def allowed(option: Option) -> str:
    """Returns the values that an option allows, in words."""
    if option.kind == "integer":
        numbers = f"{option.lowest} to {option.highest} {option.unit}"
        return " or ".join([*(f"{value} (never)" for value in option.never), numbers])
    return {
        "servers": "host:port[,host:port...]",
        "text": f"text of at most {LONGEST_TEXT} bytes",
        "flag": "true or false",
        "choice": " or ".join(option.choices),
        "patterns": "regular expressions, separated by commas",
    }[option.kind]


OPTIONS = (
    Option(
        "bootstrap.servers",
        "servers",
        "bootstrap_servers",
        "",
        "high",
        "The servers that the client asks first, as host:port[,host:port...]. The default port is"
        " 9092; an IPv6 address needs brackets. Name two or three servers: one may be down.",
        alias="metadata.broker.list",
    ),
    Option(
        "client.id",
        "text",
        "client_id",
        "rdmeta",
        "low",
        "The name under which brokers log the client, and count its quota.",
    ),
    Option(
        "security.protocol",
        "choice",
        "",
        "plaintext",
        "high",
        "The protocol of the brokers' listener.",
        choices={"plaintext": "plaintext"},
        hint=" (rdmeta does not speak TLS or SASL yet)",
    ),
    Option(
        "topic.metadata.refresh.interval.ms",
        "integer",
        "refresh_interval",
        300_000,
        "medium",
        "The time between two periodic refreshes, +-20 %: so many clients do not ask at the same"
        " time.",
        lowest=1,
        highest=3_600_000,
        never=(-1, 0),
        unit="ms",
    ),
    Option(
        "metadata.max.age.ms",
        "integer",
        "max_age",
        900_000,
        "medium",
        "How long a topic or a broker counts as true after the last answer about it. Later lookups"
        " call it stale. If this is below the refresh interval, the client refreshes at a third of"
        " it, and logs a warning.",
        lowest=1,
        highest=86_400_000,
        never=(-1,),
        unit="ms",
        default_doc="3 x `topic.metadata.refresh.interval.ms`",
    ),
    Option(
        "topic.metadata.refresh.fast.interval.ms",
        "integer",
        "fast_interval",
        100,
        "medium",
        "The first wait before the client asks again for a topic that lacks something, such as a"
        " leader. Each later wait is twice as long, up to `retry.backoff.max.ms`.",
        lowest=1,
        highest=60_000,
        unit="ms",
        default_doc="`retry.backoff.ms`",
    ),
    Option(
        "topic.metadata.propagation.max.ms",
        "integer",
        "propagation_max",
        30_000,
        "low",
        "How long a needed topic may be unknown before the client asks for it less often: a new"
        " topic takes some time to reach every broker.",
        highest=3_600_000,
        unit="ms",
    ),
    Option(
        "topic.blacklist",
        "patterns",
        "blacklist",
        (),
        "low",
        "Python's regular expressions, separated by commas (two commas stand for one). If one"
        " matches a part of a topic's name, the client neither asks for that topic nor stores it.",
    ),
    Option(
        "allow.auto.create.topics",
        "flag",
        "allow_auto_create",
        False,
        "medium",
        "Whether a broker may create a topic that the client asks for. Brokers before 0.11"
        " (Metadata v4) cannot be told not to, so they are asked for names only if this is true.",
    ),
    Option(
        "metadata.max.idle.ms",
        "integer",
        "max_idle",
        0,
        "low",
        "The client forgets a topic once no call has needed it, waited for it or read it through"
        " the client for so long. It keeps topics that handles hold. 0: it forgets none.",
        highest=_INT32_MAX,
        unit="ms",
        origin=JAVA,
    ),
    Option(
        "metadata.max.topics",
        "integer",
        "max_topics",
        1_000_000,
        "low",
        "The most topics that the application may need by name; one more is an error. Topics that a"
        " pattern finds, or ALL, do not count.",
        lowest=1,
        highest=_INT32_MAX,
        unit="topics",
        origin=OURS,
    ),
    Option(
        "max.block.ms",
        "integer",
        "max_block",
        60_000,
        "medium",
        "How long a call without a time-out of its own waits.",
        highest=_INT32_MAX,
        unit="ms",
        origin=JAVA,
    ),
    Option(
        "retry.backoff.ms",
        "integer",
        "retry_backoff",
        100,
        "medium",
        "The first wait after an attempt that failed or brought nothing new. Each later wait is"
        " twice as long, +-20 %.",
        lowest=1,
        highest=300_000,
        unit="ms",
    ),
    Option(
        "retry.backoff.max.ms",
        "integer",
        "retry_backoff_max",
        1_000,
        "medium",
        "The longest wait that `retry.backoff.ms` grows to.",
        lowest=1,
        highest=300_000,
        unit="ms",
    ),
    Option(
        "reconnect.backoff.ms",
        "integer",
        "reconnect_backoff",
        100,
        "medium",
        "The first wait before the client connects again to a server that failed. Each later wait"
        " is twice as long, +-20 %.",
        highest=3_600_000,
        unit="ms",
    ),
    Option(
        "reconnect.backoff.max.ms",
        "integer",
        "reconnect_backoff_max",
        10_000,
        "medium",
        "The longest wait that `reconnect.backoff.ms` grows to.",
        highest=3_600_000,
        unit="ms",
    ),
    Option(
        "socket.connection.setup.timeout.ms",
        "integer",
        "setup_timeout",
        30_000,
        "medium",
        "How long it may take to connect, with the resolution of the name and the handshake.",
        lowest=1_000,
        highest=_INT32_MAX,
        unit="ms",
    ),
    Option(
        "broker.address.family",
        "choice",
        "family",
        "any",
        "low",
        "The addresses of a server's name that are tried.",
        choices={"any": "any", "v4": "v4", "v6": "v6"},
    ),
    Option(
        "socket.keepalive.enable",
        "flag",
        "keepalive",
        False,
        "low",
        "Whether the system probes idle connections (SO_KEEPALIVE), so that a firewall on"
        " the way keeps them.",
    ),
    Option(
        "socket.timeout.ms",
        "integer",
        "socket_timeout",
        60_000,
        "low",
        "How long a request may stay unanswered before its connection is closed. Another broker is"
        " asked much sooner.",
        lowest=10,
        highest=300_000,
        unit="ms",
    ),
    Option(
        "receive.message.max.bytes",
        "integer",
        "max_frame",
        100_000_000,
        "medium",
        "The largest answer that the client accepts.",
        lowest=1_000,
        highest=_INT32_MAX,
        unit="bytes",
    ),
    Option(
        "metadata.recovery.strategy",
        "choice",
        "rebootstrap",
        "rebootstrap",
        "low",
        "What the client does when no known broker can be used: `rebootstrap` closes every"
        " connection and begins anew with `bootstrap.servers`, `none` keeps trying the known ones.",
        choices={"none": False, "rebootstrap": True},
    ),
    Option(
        "metadata.recovery.rebootstrap.trigger.ms",
        "integer",
        "rebootstrap_trigger",
        300_000,
        "low",
        "The client also rebootstraps when no refresh has succeeded for so long.",
        highest=_INT32_MAX,
        unit="ms",
    ),
)

# Options of librdkafka and of confluent-kafka that metadata does not need. They are accepted, and
# their values are not looked at. "topic." may precede each, as confluent-kafka allows.
_NOT_NEEDED_KEYS = """
acks api.version.fallback.ms api.version.request api.version.request.timeout.ms auto.commit.enable
auto.commit.interval.ms auto.offset.reset background_event_cb batch.num.messages batch.size
broker.address.ttl broker.version.fallback builtin.features check.crcs
client.dns.lookup client.rack client.software.name client.software.version closesocket_cb
compression.codec compression.level compression.type connect_cb connections.max.idle.ms
consume.callback.max.messages consume_cb coordinator.query.interval.ms debug default.topic.config
default_topic_conf delivery.report.only.error delivery.timeout.ms dr_cb dr_msg_cb
enable.auto.commit enable.auto.offset.store enable.gapless.guarantee enable.idempotence
enable.metrics.push enable.partition.eof enable.random.seed enable.sparse.connections
enabled_events error_cb fetch.error.backoff.ms fetch.max.bytes fetch.message.max.bytes
fetch.min.bytes fetch.queue.backoff.ms fetch.wait.max.ms group.id group.instance.id group.protocol
group.protocol.type group.remote.assignor heartbeat.interval.ms interceptors
internal.termination.signal isolation.level key.deserializer key.serializer linger.ms
log.connection.close log.queue log.thread.name log_cb log_level logger max.in.flight
max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms
max.poll.records message.copy.max.bytes message.max.bytes message.send.max.retries
message.timeout.ms metadata.request.timeout.ms msg_order_cmp oauth_cb offset.store.method
offset.store.path offset.store.sync.interval.ms offset_commit_cb on_commit on_delivery opaque
open_cb partition.assignment.strategy partitioner partitioner_cb plugin.library.paths
produce.offset.report queue.buffering.backpressure.threshold queue.buffering.max.kbytes
queue.buffering.max.messages queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages
queuing.strategy rebalance_cb reconnect.backoff.jitter.ms request.required.acks request.timeout.ms
resolve_cb retries session.timeout.ms share.acknowledgement.mode socket.blocking.max.ms
socket.max.fails socket.nagle.disable socket.receive.buffer.bytes
socket.send.buffer.bytes socket_cb statistics.interval.ms stats_cb sticky.partitioning.linger.ms
throttle_cb topic.metadata.refresh.fast.cnt topic.metadata.refresh.sparse transaction.timeout.ms
transactional.id value.deserializer value.serializer
"""
NOT_NEEDED = frozenset(_NOT_NEEDED_KEYS.split())

# Options of TLS and SASL. They are refused, and no error shows their values.
_SECURITY_KEYS = """
enable.sasl.oauthbearer.unsecure.jwt enable.ssl.certificate.verification https.ca.location
https.ca.pem oauthbearer_token_refresh_cb sasl.kerberos.keytab sasl.kerberos.kinit.cmd
sasl.kerberos.min.time.before.relogin sasl.kerberos.principal sasl.kerberos.service.name
sasl.mechanism sasl.mechanisms sasl.oauthbearer.assertion.algorithm
sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds
sasl.oauthbearer.assertion.claim.iss sasl.oauthbearer.assertion.claim.jti.include
sasl.oauthbearer.assertion.claim.nbf.seconds sasl.oauthbearer.assertion.claim.sub
sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.jwt.template.file
sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
sasl.oauthbearer.assertion.private.key.pem sasl.oauthbearer.client.credentials.client.id
sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.client.id
sasl.oauthbearer.client.secret sasl.oauthbearer.config sasl.oauthbearer.extensions
sasl.oauthbearer.grant.type sasl.oauthbearer.metadata.authentication.type sasl.oauthbearer.method
sasl.oauthbearer.scope sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url
sasl.password sasl.username ssl.ca.certificate.stores ssl.ca.location ssl.ca.pem
ssl.certificate.location ssl.certificate.pem ssl.certificate.verify_cb ssl.cipher.suites
ssl.crl.location ssl.curves.list ssl.endpoint.identification.algorithm ssl.engine.id
ssl.engine.location ssl.key.location ssl.key.password ssl.key.pem ssl.keystore.location
ssl.keystore.password ssl.providers ssl.sigalgs.list ssl_ca ssl_certificate
ssl_engine_callback_data ssl_key
"""
SECURITY = frozenset(_SECURITY_KEYS.split())
