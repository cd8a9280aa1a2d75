"""Certificates, users and settings of brokers for a real Kafka with secured listeners.

    security = KafkaSecurity(directory)
    RealKafka(version, 3, directory, listeners=LISTENERS, settings=security.settings, ...)
    Client({"bootstrap.servers": kafka.address(1, SECURE), **security.conf("SCRAM-SHA-512")})

Each listener says in its name what its clients need. Passwords and the claims of tokens have MARK
in them. `security.secrets` searches output for MARK and for the clients' keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from certificates import LONG_AGO, Authority
from marked_secrets import Secrets
from real_kafka import Listener
from signed_tokens import Signer

MARK = "m4rked"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
# The mechanisms of listeners that do not enable all of them.
ENABLED = {"SASL": ("PLAIN", "SCRAM-SHA-512"), "SIGNED": ("OAUTHBEARER",)}
ALICE, PASSWORD = "alice", f"{MARK}-alice"
# BOB is a user of SCRAM-SHA-256, and tests change his password. CAROL is one of PLAIN: the last
# node has another password of hers.
BOB, BOBS_PASSWORD = "bob", f"{MARK}-bob"
CAROL, CAROLS_PASSWORD = "carol", f"{MARK}-carol"
# Each is a user of one mechanism only.
ONLY = {"PLAIN": "paula", "SCRAM-SHA-256": "sam", "SCRAM-SHA-512": "sue", "OAUTHBEARER": "olga"}
ONLYS_PASSWORD, KEY_PASSWORD = f"{MARK}-only", f"{MARK}-key"
# So long a session of SCRAM-SHA-256 or OAUTHBEARER lasts.
LIFETIME_MS = 5000
# The common name of the brokers' certificates, which are for localhost and 127.0.0.1.
HOST = "kafka-1.example"
# So long a broker waits before it says that a login failed.
DELAY_MS = 500

SECURE, CUT, MUTUAL, SASL = "SECURE", "CUT", "MUTUAL", "SASL"
ONE_WAY, EXPIRED, BRIEF, SIGNED = "ONEWAY", "EXPIRED", "BRIEF", "SIGNED"
LISTENERS = (
    Listener(SECURE, "SASL_SSL"),
    Listener(CUT, "SASL_SSL", is_proxied=True),
    Listener(MUTUAL, "SSL", is_proxied=True),  # wants a client certificate
    Listener(SASL, "SASL_PLAINTEXT"),
    Listener(ONE_WAY, "SSL"),
    Listener(EXPIRED, "SSL"),  # its certificate has expired
    Listener(BRIEF, "SSL", is_proxied=True),  # its certificate is replaced while the broker runs
    Listener(SIGNED, "SASL_PLAINTEXT"),  # takes tokens that an OIDC server has signed
)
# What the certificates of clients have besides their names.
_SUBJECT = {"organization_unit_name": "clients", "organization_name": "Example"}
_KAFKA = "org.apache.kafka.common.security"
_OAUTH = f"{_KAFKA}.oauthbearer"
_VALIDATOR = f"{_OAUTH}.OAuthBearerValidatorCallbackHandler"
_UNSECURED = f"{_OAUTH}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"


class KafkaSecurity:
    """The certificates in `directory`, and what brokers and clients are configured with."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.secrets = Secrets()
        self.secrets.add("a marked secret", MARK)
        self.brokers = Authority("the brokers' CA")
        self.clients = Authority("the clients' CA")
        self.others = Authority("another CA")
        self.signer, self.forger = Signer(MARK), Signer(MARK)
        self.keys = self.signer.write(directory / "keys.json")
        self.ca = self.brokers.write(directory, "ca.pem")
        self.other_ca = self.others.write(directory, "other-ca.pem")
        self.clients_ca = self.clients.write(directory, "clients-ca.pem")
        self.keystore = self.store("broker.pem")
        self.expired = self.store("expired.pem", expires=LONG_AGO)
        self.brief = self.store("brief.pem")

    def store(
        self, name: str, authority: Authority | None = None, expires: datetime | None = None
    ) -> str:
        """Writes a new key and certificate of a broker to a file that brokers read."""
        identity = (authority or self.brokers).issue(
            "127.0.0.1", "localhost", common_name=HOST, not_after=expires
        )
        path = self.directory / name
        path.write_text(identity.pkcs8() + identity.certificate)
        return str(path)

    @property
    def settings(self) -> dict[str, object]:
        """The settings of every broker."""
        found: dict[str, object] = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",  # each client of PLAINTEXT
            "allow.everyone.if.no.acl.found": "true",
            "connection.failed.authentication.delay.ms": DELAY_MS,
            "ssl.allow.dn.changes": "true",
            "ssl.allow.san.changes": "true",
            "sasl.oauthbearer.jwks.endpoint.url": self.keys,
        }
        for listener in LISTENERS:
            options: dict[str, object] = {}
            if listener.protocol.endswith("SSL"):
                options |= self._tls(listener.name)
            if listener.protocol.startswith("SASL"):
                options |= self._sasl(listener.name)
            prefix = f"listener.name.{listener.name.lower()}"
            found |= {f"{prefix}.{key}": value for key, value in options.items()}
        return found

    def _tls(self, listener: str) -> dict[str, object]:
        store = {EXPIRED: self.expired, BRIEF: self.brief}.get(listener, self.keystore)
        options: dict[str, object] = {"ssl.keystore.type": "PEM", "ssl.keystore.location": store}
        if listener == MUTUAL:
            options["ssl.client.auth"] = "required"
            options["ssl.truststore.type"] = "PEM"
            options["ssl.truststore.location"] = self.clients_ca
        return options

    def _sasl(self, listener: str) -> dict[str, object]:
        handler = _VALIDATOR if listener == SIGNED else _UNSECURED
        options: dict[str, object] = {
            "sasl.enabled.mechanisms": ",".join(ENABLED.get(listener, MECHANISMS)),
            "plain.sasl.jaas.config": _plain_users(CAROLS_PASSWORD),
            "scram-sha-256.connections.max.reauth.ms": LIFETIME_MS,
            "oauthbearer.connections.max.reauth.ms": LIFETIME_MS,
            "oauthbearer.sasl.jaas.config": f"{_OAUTH}.OAuthBearerLoginModule required;",
            "oauthbearer.sasl.server.callback.handler.class": handler,
        }
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            login = f"{_KAFKA}.scram.ScramLoginModule required;"
            options[f"{mechanism}.sasl.jaas.config"] = login
        return options

    @property
    def last_node(self) -> dict[str, object]:
        """The settings of a node that refuses CAROL."""
        prefix = f"listener.name.{CUT.lower()}"
        return {f"{prefix}.plain.sasl.jaas.config": _plain_users(f"{MARK}-other")}

    @property
    def java_options(self) -> Sequence[str]:
        """The options of the JVMs: the URL from which a broker may read keys."""
        return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.keys}"]

    @property
    def format_options(self) -> Sequence[str]:
        """The options of the storage tool that make the users of SCRAM."""
        users = [
            ("SCRAM-SHA-256", ALICE, PASSWORD),
            ("SCRAM-SHA-512", ALICE, PASSWORD),
            ("SCRAM-SHA-256", BOB, BOBS_PASSWORD),
            *((m, ONLY[m], ONLYS_PASSWORD) for m in ("SCRAM-SHA-256", "SCRAM-SHA-512")),
        ]
        return [
            option
            for mechanism, name, password in users
            for option in ("--add-scram", f"{mechanism}=[name={name},password={password}]")
        ]

    def conf(self, mechanism: str = "SCRAM-SHA-512", **more: object) -> dict[str, object]:
        """Returns a client's configuration for SASL_SSL; SASL_PLAINTEXT ignores what is of TLS."""
        conf: dict[str, object] = {
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": mechanism,
            "ssl.ca.location": self.ca,
        }
        if mechanism == "OAUTHBEARER":
            conf["enable.sasl.oauthbearer.unsecure.jwt"] = True
            conf["sasl.oauthbearer.config"] = f"principal={ALICE} scope={MARK}"
        else:
            conf |= {"sasl.username": ALICE, "sasl.password": PASSWORD}
        return {**conf, **{key.replace("_", "."): value for key, value in more.items()}}

    def only(self, mechanism: str) -> dict[str, object]:
        """Returns the configuration of the user whom only this mechanism lets in."""
        conf = self.conf(mechanism)
        if mechanism == "OAUTHBEARER":
            conf["sasl.oauthbearer.config"] = f"principal={ONLY[mechanism]} scope={MARK}"
            return conf
        return {**conf, "sasl.username": ONLY[mechanism], "sasl.password": ONLYS_PASSWORD}

    def certificate(
        self,
        name: str,
        authority: Authority | None = None,
        expires: datetime | None = None,
        *,
        password: str | None = None,
    ) -> dict[str, object]:
        """Writes a client's certificate; returns the configuration for SSL with it.

        With a `password` the key is encrypted.
        """
        identity = (authority or self.clients).issue(
            name, common_name=name, not_after=expires, **_SUBJECT
        )
        self.secrets.add_key(f"the key of {name}", identity.key)
        if password is not None:
            identity = identity._replace(key=identity.encrypted(password))
            self.secrets.add_key(f"the encrypted key of {name}", identity.key)
        certificate, key = identity.write(self.directory, name)
        return {
            "security.protocol": "ssl",
            "ssl.ca.location": self.ca,
            "ssl.certificate.location": certificate,
            "ssl.key.location": key,
            **({} if password is None else {"ssl.key.password": password}),
        }


def principal_of(name: str) -> str:
    """Returns the principal whom brokers see in a client's certificate."""
    unit, organization = _SUBJECT["organization_unit_name"], _SUBJECT["organization_name"]
    return f"CN={name},OU={unit},O={organization}"


def _plain_users(carols: str) -> str:
    """Returns the users of PLAIN; `carols` is the password of CAROL."""
    passwords = {ALICE: PASSWORD, CAROL: carols, ONLY["PLAIN"]: ONLYS_PASSWORD}
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    return f"{_KAFKA}.plain.PlainLoginModule required {users};"
