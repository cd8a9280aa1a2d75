"""The words for failures of TLS, also if the other side sends nonsense."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from rdmeta.config.security_settings import TlsSettings
from rdmeta.net.tls import explain

_EXPIRED = 10
_PAST, _FUTURE = "Feb  3 00:00:00 2001 GMT", "Feb  3 00:00:00 2999 GMT"


def certificate(name: str, **more: str) -> dict[str, Any]:
    return {"subject": ((("commonName", name),),), "issuer": ((("commonName", "ca"),),), **more}


def expired(*chain: dict[str, Any]) -> str:
    """Returns the words for a chain in which a certificate has expired."""
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = _EXPIRED, "certificate has expired"
    return str(explain(error, TlsSettings(), "kafka-1", chain, b""))


@pytest.mark.parametrize("date", ["Bad time value", "", "soon"])
def test_a_date_that_is_no_date_hides_no_other_certificate(date: str) -> None:
    strange = certificate("strange", notAfter=date)
    old = certificate("old", notAfter=_PAST)
    assert f"(old) expired on {_PAST}: renew it" in expired(strange, old)
    assert "a certificate of the broker has expired: renew it" in expired(strange)


def test_a_certificate_without_a_date_hides_no_other_certificate() -> None:
    chain = certificate("good", notAfter=_FUTURE), certificate("none"), certificate("old")
    chain[2]["notAfter"] = _PAST
    assert f"(old) expired on {_PAST}: renew it" in expired(*chain)
