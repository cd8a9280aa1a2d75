"""The tables of the client's options: names, types, ranges, defaults, and what each does.

`rdmeta.config` checks a configuration against it, tools/options_page.py makes a page of it, and
tests/config/test_option_table.py compares it with librdkafka's own table. Names, ranges and
defaults are librdkafka's; an option that librdkafka lacks says where it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

LIBRDKAFKA = "librdkafka"
CONFLUENT = "confluent-kafka"
JAVA = "Java's producer"
OURS = "rdmeta"

LONGEST_TEXT = 32767
"""The bytes of text that the header of a request can hold."""

LONGEST_PEM = 1 << 20
"""The bytes of a text in PEM; certificates of every public authority are a quarter of it."""

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
"""The mechanisms of SASL that the client speaks."""

INTERVAL = "topic.metadata.refresh.interval.ms"
MAX_AGE = "metadata.max.age.ms"

_INT32_MAX = 2147483647


class Option(NamedTuple):
    """An option of the client. `default`, `lowest`, `highest` and `never` are in its unit.

    An option that belongs to a part of the security has that part as its `area`: "tls", "sasl",
    "login" (PLAIN and SCRAM), "oauth" or "kerberos". It has no effect where the protocol or
    the mechanism lacks that part. Fields of TlsSettings, SaslSettings and OauthSettings have the
    prefixes "tls.", "sasl." and "oauth.".
    """

    key: str
    kind: str  # a name in rdmeta.config.option_values.KINDS
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
    area: str = ""


class Refused(NamedTuple):
    """An option that the client cannot serve. `reason` says why, and what to use instead."""

    area: str
    reason: str


class JavaKey(NamedTuple):
    """A key of Java's clients that librdkafka lacks. `doc` says what the client makes of it."""

    area: str
    doc: str


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
        "path": "a path",
        "certificates": "certificates in PEM",
        "private key": "a private key in PEM, or a callable",
        "name": f"text of at most {LONGEST_TEXT} bytes, or a callable",
        "secret": f"text of at most {LONGEST_TEXT} bytes, or a callable",
        "mechanism": " or ".join(MECHANISMS),
        "callable": "a callable",
        "url": "http://... or https://...",
        "pairs": "name=value[,name=value...]",
        "versions": "TLSv1.2 or TLSv1.3 or both, separated by a comma",
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
        "protocol",
        "plaintext",
        "high",
        "The protocol of the brokers' listener.",
        choices={each: each for each in ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")},
    ),
    Option(
        INTERVAL,
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
        MAX_AGE,
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
        default_doc="3 x `topic.metadata.refresh.interval.ms`, at least a minute",
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
        " the client for this long. It keeps topics that handles hold. 0: it forgets none.",
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
        " connection and starts from `bootstrap.servers`, `none` keeps trying the known ones.",
        choices={"none": False, "rebootstrap": True},
    ),
    Option(
        "metadata.recovery.rebootstrap.trigger.ms",
        "integer",
        "rebootstrap_trigger",
        300_000,
        "low",
        "The client also rebootstraps when no refresh has succeeded for this long.",
        highest=_INT32_MAX,
        unit="ms",
    ),
    Option(
        "ssl.ca.location",
        "path",
        "tls.ca_location",
        "",
        "high",
        "A file of certificates in PEM, or a directory of such files. If some have OpenSSL's hashed"
        " names (`openssl rehash`), only those count. A broker's certificate must come from one of"
        " them. Not set, or `probe`: the system's certificates.",
        area="tls",
    ),
    Option(
        "ssl.ca.pem",
        "certificates",
        "tls.ca_pem",
        "",
        "low",
        "The same certificates as text.",
        area="tls",
    ),
    Option(
        "enable.ssl.certificate.verification",
        "flag",
        "tls.verify",
        True,
        "high",
        "Whether a broker's certificate is verified. Without it an attacker on the way can read and"
        " change all traffic, passwords included.",
        area="tls",
    ),
    Option(
        "ssl.endpoint.identification.algorithm",
        "choice",
        "tls.check_hostname",
        "https",
        "medium",
        "Whether a broker's certificate must name its host: `https`, or `none`. Java's way to"
        " say `none` is an empty value.",
        choices={"https": True, "none": False},
        area="tls",
    ),
    Option(
        "ssl.certificate.location",
        "path",
        "tls.certificate_location",
        "",
        "medium",
        "The file of the client's certificate in PEM, and of the chain above it. The client"
        " shows it to brokers that ask for one.",
        area="tls",
    ),
    Option(
        "ssl.certificate.pem",
        "certificates",
        "tls.certificate_pem",
        "",
        "low",
        "The same certificates as text.",
        area="tls",
    ),
    Option(
        "ssl.key.location",
        "path",
        "tls.key_location",
        "",
        "medium",
        "The file of the client's private key in PEM. It may be the file of the certificate.",
        area="tls",
    ),
    Option(
        "ssl.key.pem",
        "private key",
        "tls.key_pem",
        "",
        "low",
        "The same key as text. It is never written to a disk.",
        area="tls",
    ),
    Option(
        "ssl.key.password",
        "secret",
        "tls.key_password",
        "",
        "medium",
        "The password of an encrypted private key.",
        area="tls",
    ),
    Option(
        "ssl.crl.location",
        "path",
        "tls.crl_location",
        "",
        "low",
        "A file of certificate revocation lists in PEM. A broker whose certificate it names is"
        " refused.",
        area="tls",
    ),
    Option(
        "ssl.cipher.suites",
        "text",
        "tls.ciphers",
        "",
        "low",
        "The ciphers of TLS 1.2 in OpenSSL's notation, such as"
        " `ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256`.",
        area="tls",
    ),
    Option(
        "ssl.curves.list",
        "text",
        "tls.curves",
        "",
        "low",
        "The curve of the key exchange. Python's ssl takes one, such as `prime256v1`, and not a"
        " list.",
        area="tls",
    ),
    Option(
        "ssl.enabled.protocols",
        "versions",
        "tls.versions",
        (),
        "low",
        "The versions of TLS that the client speaks.",
        default_doc="both",
        origin=JAVA,
        area="tls",
    ),
    Option(
        "sasl.mechanism",
        "mechanism",
        "sasl.mechanism",
        "",
        "high",
        "How the client logs in. librdkafka's default, GSSAPI, is not supported, so a protocol"
        " with SASL needs this option. The SCRAM mechanisms need `pip install 'rdmeta[sasl]'`.",
        alias="sasl.mechanisms",
        area="sasl",
    ),
    Option(
        "sasl.username",
        "name",
        "sasl.username",
        "",
        "high",
        "The user of PLAIN and SCRAM.",
        area="login",
    ),
    Option(
        "sasl.password",
        "secret",
        "sasl.password",
        "",
        "high",
        "The password of PLAIN and SCRAM.",
        area="login",
    ),
    Option(
        "oauth_cb",
        "callable",
        "oauth.callback",
        "",
        "high",
        "Makes tokens for OAUTHBEARER: from the value of `sasl.oauthbearer.config`, or empty"
        " text, to (token, expiry in seconds since the epoch[, principal[, extensions as a"
        " dict]]). A thread of its own calls it.",
        origin=CONFLUENT,
        area="oauth",
    ),
    Option(
        "sasl.oauthbearer.method",
        "choice",
        "oauth.method",
        "default",
        "low",
        "`oidc`: the client gets its tokens from `sasl.oauthbearer.token.endpoint.url`.",
        choices={"default": "default", "oidc": "oidc"},
        default_doc="`oidc` if an endpoint is set and `oauth_cb` is not",
        area="oauth",
    ),
    Option(
        "sasl.oauthbearer.token.endpoint.url",
        "url",
        "oauth.endpoint",
        "",
        "low",
        "The token endpoint of an OAuth server. The client asks it for tokens by the grant of"
        " client credentials.",
        area="oauth",
    ),
    Option(
        "sasl.oauthbearer.client.id",
        "text",
        "oauth.client_id",
        "",
        "low",
        "The client's name at that server.",
        alias="sasl.oauthbearer.client.credentials.client.id",
        area="oauth",
    ),
    Option(
        "sasl.oauthbearer.client.secret",
        "secret",
        "oauth.client_secret",
        "",
        "low",
        "The client's password at that server.",
        alias="sasl.oauthbearer.client.credentials.client.secret",
        area="oauth",
    ),
    Option(
        "sasl.oauthbearer.scope",
        "text",
        "oauth.scope",
        "",
        "low",
        "The scope that the client asks that server for.",
        area="oauth",
    ),
    Option(
        "sasl.oauthbearer.extensions",
        "pairs",
        "oauth.extensions",
        (),
        "low",
        "The SASL extensions that the client sends with a token of that server, such as"
        " `logicalCluster=lkc-1,identityPoolId=pool-1`.",
        area="oauth",
    ),
    Option(
        "sasl.oauthbearer.grant.type",
        "choice",
        "",
        "client_credentials",
        "low",
        "The grant by which the client asks that server.",
        choices={"client_credentials": ""},
        hint=" (for another grant, get the token in oauth_cb)",
        area="oauth",
    ),
    Option(
        "sasl.oauthbearer.metadata.authentication.type",
        "choice",
        "",
        "none",
        "low",
        "The service of a cloud that gives tokens.",
        choices={"none": ""},
        hint=" (for tokens of a cloud's service, get the token in oauth_cb)",
        area="oauth",
    ),
    Option(
        "https.ca.location",
        "path",
        "oauth.https_ca_location",
        "",
        "low",
        "As `ssl.ca.location`, for that server.",
        area="oauth",
    ),
    Option(
        "https.ca.pem",
        "certificates",
        "oauth.https_ca_pem",
        "",
        "low",
        "As `ssl.ca.pem`, for that server.",
        area="oauth",
    ),
    Option(
        "sasl.oauthbearer.config",
        "secret",
        "oauth.config",
        "",
        "low",
        "What `oauth_cb` receives. With `enable.sasl.oauthbearer.unsecure.jwt`, what an"
        " unsecured token says, such as `principal=alice scope=read lifeSeconds=600`.",
        area="oauth",
    ),
    Option(
        "enable.sasl.oauthbearer.unsecure.jwt",
        "flag",
        "oauth.unsecured",
        False,
        "low",
        "The client makes unsigned tokens of `sasl.oauthbearer.config`, for tests. A broker in"
        " production refuses them.",
        area="oauth",
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
message.timeout.ms metadata.request.timeout.ms msg_order_cmp offset.store.method
offset.store.path offset.store.sync.interval.ms offset_commit_cb on_commit on_delivery opaque
open_cb partition.assignment.strategy partitioner partitioner_cb plugin.library.paths
produce.offset.report queue.buffering.backpressure.threshold queue.buffering.max.kbytes
queue.buffering.max.messages queue.buffering.max.ms queued.max.messages.kbytes queued.min.messages
queuing.strategy rebalance_cb reconnect.backoff.jitter.ms request.required.acks request.timeout.ms
resolve_cb retries
sasl.oauthbearer.sub.claim.name session.timeout.ms share.acknowledgement.mode socket.blocking.max.ms
socket.max.fails socket.nagle.disable socket.receive.buffer.bytes
socket.send.buffer.bytes socket_cb statistics.interval.ms ssl.ca.certificate.stores
stats_cb sticky.partitioning.linger.ms
throttle_cb topic.metadata.refresh.fast.cnt topic.metadata.refresh.sparse transaction.timeout.ms
transactional.id value.deserializer value.serializer
"""
NOT_NEEDED = frozenset(_NOT_NEEDED_KEYS.split())


_NO_KERBEROS = "GSSAPI (Kerberos) is not supported: set sasl.mechanism to another mechanism"
_NO_ENGINE = "OpenSSL's engines are not supported: give the key by ssl.key.location or ssl.key.pem"
_NO_ASSERTION = "the grant by a JWT assertion is not supported: get the token in oauth_cb"
_NO_CLASS = "no class of Java can be loaded"
_NO_OBJECT = "it is an object of librdkafka's C API"

# Options of TLS and SASL that the client cannot serve. No error shows their values, which may be
# secrets; only a path is shown, in the command that converts its file.
REFUSED: dict[str, Refused] = {
    **{
        f"sasl.kerberos.{name}": Refused("kerberos", _NO_KERBEROS)
        for name in (
            *("keytab", "kinit.cmd", "min.time.before.relogin", "principal", "service.name"),
            # Java's
            *("ticket.renew.jitter", "ticket.renew.window.factor"),
        )
    },
    **{
        f"sasl.oauthbearer.assertion.{name}": Refused("oauth", _NO_ASSERTION)
        for name in (
            *("algorithm", "claim.aud", "claim.exp.seconds", "claim.iss", "claim.jti.include"),
            *("claim.nbf.seconds", "claim.sub", "file", "jwt.template.file", "private.key.file"),
            *("private.key.passphrase", "private.key.pem"),
        )
    },
    **dict.fromkeys(
        ("ssl.engine.id", "ssl.engine.location", "ssl_engine_callback_data"),
        Refused("tls", _NO_ENGINE),
    ),
    "oauthbearer_token_refresh_cb": Refused("oauth", f"{_NO_OBJECT}: use oauth_cb"),
    "ssl_ca": Refused("tls", f"{_NO_OBJECT}: use ssl.ca.pem"),
    "ssl_certificate": Refused("tls", f"{_NO_OBJECT}: use ssl.certificate.pem"),
    "ssl_key": Refused("tls", f"{_NO_OBJECT}: use ssl.key.pem"),
    "ssl.certificate.verify_cb": Refused(
        "tls", "no callable can verify certificates: use ssl.ca.location or ssl.ca.pem"
    ),
    "ssl.providers": Refused(
        "tls", "OpenSSL chooses its providers for the whole process: name them in openssl.cnf"
    ),
    "ssl.sigalgs.list": Refused(
        "tls", "Python's ssl cannot choose signature algorithms: leave it out"
    ),
    "sasl.client.callback.handler.class": Refused("sasl", f"{_NO_CLASS}: use oauth_cb"),
    "sasl.login.class": Refused("sasl", f"{_NO_CLASS}: use oauth_cb"),
    "ssl.engine.factory.class": Refused("tls", f"{_NO_CLASS}: use ssl.ca.location and its like"),
}

# Keys of Java's clients, or keys that mean another thing there. `java_keys` translates them.
JAVA_KEYS: dict[str, JavaKey] = {
    "sasl.jaas.config": JavaKey(
        "sasl",
        "`PlainLoginModule` and `ScramLoginModule`: `sasl.username` and `sasl.password`."
        " `OAuthBearerLoginModule`: the client's id and secret, scope, extensions, or the claims of"
        " an unsecured token.",
    ),
    "ssl.truststore.type": JavaKey(
        "tls", "`PEM`. For `JKS` and `PKCS12`, the error has the command that converts the file."
    ),
    "ssl.truststore.location": JavaKey("tls", "`ssl.ca.location`, if the type is PEM."),
    "ssl.truststore.certificates": JavaKey("tls", "`ssl.ca.pem`, if the type is PEM."),
    "ssl.truststore.password": JavaKey("tls", "Files in PEM have no such password."),
    "ssl.keystore.type": JavaKey(
        "tls", "`PEM`. For `JKS` and `PKCS12`, the error has the commands that convert the file."
    ),
    "ssl.keystore.location": JavaKey(
        "tls",
        "`ssl.key.location` and `ssl.certificate.location`, if the type is PEM. Without"
        " a type it is librdkafka's file in PKCS#12: the error has the command that converts it.",
    ),
    "ssl.keystore.certificate.chain": JavaKey("tls", "`ssl.certificate.pem`."),
    "ssl.keystore.key": JavaKey("tls", "`ssl.key.pem`."),
    "ssl.keystore.password": JavaKey("tls", "Files in PEM have `ssl.key.password` instead."),
    "ssl.protocol": JavaKey("tls", "Nothing, if it is `TLS`, `TLSv1.2` or `TLSv1.3`."),
    "sasl.login.callback.handler.class": JavaKey(
        "sasl", "Nothing, if it is Kafka's own `OAuthBearerLoginCallbackHandler`."
    ),
    "sasl.oauthbearer.jwt.retriever.class": JavaKey(
        "oauth", "Nothing, if it is Kafka's own `ClientCredentialsJwtRetriever`."
    ),
    "sasl.oauthbearer.jwt.validator.class": JavaKey(
        "oauth", "Nothing: the broker validates tokens."
    ),
    "sasl.oauthbearer.header.urlencode": JavaKey("oauth", "Nothing, if it is `false`."),
    **{
        f"sasl.oauthbearer.{name}": JavaKey("oauth", "Nothing.")
        for name in (
            *("clock.skew.seconds", "expected.audience", "expected.issuer", "scope.claim.name"),
            *("jwks.endpoint.refresh.ms", "jwks.endpoint.url"),
            *("jwks.endpoint.retry.backoff.max.ms", "jwks.endpoint.retry.backoff.ms"),
        )
    },
    **{
        f"sasl.login.{name}": JavaKey("sasl", "Nothing.")
        for name in (
            *("connect.timeout.ms", "read.timeout.ms", "retry.backoff.max.ms", "retry.backoff.ms"),
            *("refresh.buffer.seconds", "refresh.min.period.seconds", "refresh.window.factor"),
            "refresh.window.jitter",
        )
    },
    **{
        f"ssl.{name}": JavaKey("tls", "Nothing.")
        for name in (
            *("keymanager.algorithm", "provider", "secure.random.implementation"),
            "trustmanager.algorithm",
        )
    },
}
