"""The settings of TLS and SASL keep their secrets to themselves."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from rdmeta.config.secret import Secret
from rdmeta.config.security_settings import OauthSettings, SaslSettings, TlsSettings

VALUE = "s3cr3t-marked"


def test_settings_with_a_secret_are_not_pickled_and_their_copies_hide_it() -> None:
    settings = SaslSettings("PLAIN", "alice", Secret(VALUE, "sasl.password"))
    with pytest.raises(TypeError, match="a secret cannot be pickled: sasl.password"):
        pickle.dumps(settings)
    assert VALUE not in repr(dataclasses.asdict(settings))


def test_the_repr_of_settings_has_no_secret_and_no_pem() -> None:
    oauth = OauthSettings(
        callback=print,  # type: ignore[arg-type]
        config=Secret(VALUE, "sasl.oauthbearer.config"),
        endpoint=f"https://{VALUE}@host/",
        client_secret=Secret(VALUE, "sasl.oauthbearer.client.secret"),
        https_ca_pem=VALUE,
    )
    sasl = SaslSettings(
        "OAUTHBEARER", Secret(lambda: VALUE, "sasl.username"), Secret(VALUE, "sasl.password"), oauth
    )
    tls = TlsSettings(ca_pem=VALUE, certificate_pem=VALUE, key_pem=Secret(VALUE, "ssl.key.pem"))
    assert VALUE not in repr(sasl) + repr(tls)
    assert "OAUTHBEARER" in repr(sasl)
