"""Tokens that a real Kafka believes: JWTs that a key of the test signs (RS256)."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

_KEY_ID = "test"


class Signer:
    """A key that signs tokens; brokers read its public part from a file.

    Each token has `mark` in its claims, so that a test can search output for tokens.
    """

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._key = rsa.generate_private_key(65537, 2048)

    def write(self, path: Path) -> str:
        """Writes the public key as a set of JSON Web Keys; returns the file's URL."""
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "use": "sig",
            "alg": "RS256",
            "kid": _KEY_ID,
            "n": _number(numbers.n),
            "e": _number(numbers.e),
        }
        path.write_text(json.dumps({"keys": [key]}))
        return path.as_uri()

    def token(self, subject: str, life: float) -> str:
        """Returns a token for `subject`, which lives so many seconds."""
        now = time.time()
        claims = {"sub": subject, "iss": "test", "iat": int(now), "exp": int(now + life)}
        claims["jti"] = self._mark
        head = {"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}
        text = f"{_encoded(json.dumps(head).encode())}.{_encoded(json.dumps(claims).encode())}"
        signature = self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{_encoded(signature)}"

    def answer(self, subject: str, life: float) -> tuple[int, bytes]:
        """Returns the answer of a token endpoint: its status and its body."""
        found = {"access_token": self.token(subject, life), "token_type": "Bearer"}
        return 200, json.dumps({**found, "expires_in": life}).encode()


def _number(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
