"""The broker's side of SASL logins, for tests: SCRAM by scramp; PLAIN and OAUTHBEARER as Kafka's.

server = LoginServer({"alice": "secret"}, tokens={"abc"})
exchange = server.begin("PLAIN")
refusal, data = exchange(message)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from scramp import ScramException, ScramMechanism

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class Step(NamedTuple):
    """The broker's answer to one message: `refusal` is the text of error 58, None for none."""

    refusal: str | None
    data: bytes = b""


class LoginServer:
    """Users with their passwords, and the bearer tokens that are accepted.

    A test changes `users`, `tokens` and `iterations` at any time.
    """

    def __init__(
        self,
        users: dict[str, str] | None = None,
        *,
        tokens: set[str] | None = None,
        iterations: int = 4096,
    ) -> None:
        self.users = users if users is not None else {}
        self.tokens = tokens if tokens is not None else set()
        self.iterations = iterations

    def begin(self, mechanism: str) -> Callable[[bytes], Step]:
        """Returns a function that takes the client's messages of one login, one after the other."""
        if mechanism == "PLAIN":
            return self._plain
        if mechanism == "OAUTHBEARER":
            return self._oauth
        return self._scram(mechanism)

    def _plain(self, message: bytes) -> Step:
        zero, user, password = message.decode().split("\0")
        if not zero and password and self.users.get(user) == password:
            return Step(None)
        return Step("Authentication failed: Invalid username or password")

    def _oauth(self, message: bytes) -> Step:
        if message == b"\1":
            return Step('{"status":"invalid_token"}')
        header, auth, *_ = message.decode().split("\1")
        if header == "n,," and auth.removeprefix("auth=Bearer ") in self.tokens:
            return Step(None)
        return Step(None, b'{"status":"invalid_token"}')

    def _scram(self, mechanism: str) -> Callable[[bytes], Step]:
        scram = ScramMechanism(mechanism)

        def credentials(user: str) -> tuple[bytes, bytes, bytes, int] | None:
            # Kafka hashes the UTF-8 of the password as it is; scramp prepares it by SASLprep.
            if user not in self.users:
                return None
            return stored(scram, self.users[user].encode(), self.iterations)

        server = scram.make_server(credentials)

        def take(message: bytes) -> Step:
            try:
                if server.stage is None:
                    server.set_client_first(message.decode())
                    return Step(None, server.get_server_first().encode())
                server.set_client_final(message.decode())
                return Step(None, server.get_server_final().encode())
            except ScramException:
                return Step(
                    "Authentication failed during authentication due to invalid credentials with"
                    f" SASL mechanism {mechanism}"
                )

        return take


def stored(
    scram: ScramMechanism, password: bytes, iterations: int
) -> tuple[bytes, bytes, bytes, int]:
    """Returns (salt, stored key, server key, iterations) of RFC 5802."""
    import hashlib
    import hmac

    salt, name = b"0123456789abcdef", scram.hf().name
    salted = hashlib.pbkdf2_hmac(name, password, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", name)
    return (
        salt,
        hashlib.new(name, client_key).digest(),
        hmac.digest(salted, b"Server Key", name),
        iterations,
    )
