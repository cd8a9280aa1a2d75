"""What is missing in a secured configuration is named, and so is what contradicts."""

from __future__ import annotations

import logging
import random
import traceback
from typing import Any

import pytest

from rdmeta import ConfigError
from rdmeta.config import parse
from rdmeta.config.option_table import JAVA_KEYS, OPTIONS, REFUSED
from rdmeta.config.secret import Secret
from rdmeta.config.security_settings import OauthSettings, SaslSettings, TlsSettings

SECRET = "s3cr3t-marked"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n"
LOCKED = KEY.replace("PRIVATE", "ENCRYPTED PRIVATE")
SASL = {"security.protocol": "sasl_ssl"}
LOGIN = {**SASL, "sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": SECRET}
OAUTH = {**SASL, "sasl.mechanism": "OAUTHBEARER"}
OIDC = {
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": SECRET,
}


def tls(**conf: object) -> Any:
    given = {f"ssl.{key.replace('_', '.')}": value for key, value in conf.items()}
    return parse({"security.protocol": "ssl", **given}, servers=False).tls


def problem(conf: dict[str, object]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(conf, servers=False)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def tls_problem(**conf: object) -> str:
    given = {f"ssl.{key.replace('_', '.')}": value for key, value in conf.items()}
    return problem({"security.protocol": "ssl", **given})


def test_tls_without_options_trusts_the_systems_certificates_and_checks_the_host() -> None:
    assert tls() == TlsSettings()
    assert tls(ca_location="probe") == TlsSettings()
    assert tls(ca_location=None, ca_pem="", key_location="", crl_location=None) == TlsSettings()
    assert TlsSettings().verify
    assert TlsSettings().check_hostname


def test_each_option_of_tls_has_its_setting() -> None:
    found = tls(
        ca_location="ca",
        certificate_pem=CERTIFICATE,
        key_pem=LOCKED,
        key_password=SECRET,
        crl_location="crl",
        cipher_suites="ECDHE+AESGCM",
        curves_list="prime256v1",
        enabled_protocols="TLSv1.2",
    )
    assert found == TlsSettings(
        ca_location="ca",
        certificate_pem=CERTIFICATE,
        key_pem=Secret(LOCKED, "ssl.key.pem"),
        key_password=Secret(SECRET, "ssl.key.password"),
        crl_location="crl",
        ciphers="ECDHE+AESGCM",
        curves="prime256v1",
        highest_version="TLSv1.2",
    )


@pytest.mark.parametrize(
    ("conf", "key"),
    [
        ({"enable.ssl.certificate.verification": False}, "enable.ssl.certificate.verification"),
        ({"ssl.endpoint.identification.algorithm": "none"}, "ssl.endpoint.identification"),
        ({"ssl.endpoint.identification.algorithm": ""}, "ssl.endpoint.identification"),
        (
            {
                "enable.ssl.certificate.verification": "false",
                "ssl.endpoint.identification.algorithm": "none",
            },
            "enable.ssl.certificate.verification",
        ),
    ],
)
def test_a_check_that_is_switched_off_is_one_warning_with_its_option(
    conf: dict[str, Any], key: str, caplog: pytest.LogCaptureFixture
) -> None:
    parse({"security.protocol": "ssl", **conf}, servers=False)
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(key)


@pytest.mark.parametrize(
    "conf",
    [
        {"security.protocol": "ssl"},
        {**LOGIN, "ssl.endpoint.identification.algorithm": "https"},
        {"security.protocol": "plaintext", "enable.ssl.certificate.verification": "false"},
    ],
)
def test_there_is_no_warning_where_everything_is_checked_or_tls_is_not_used(
    conf: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    parse(conf, servers=False)
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


PLAIN = {"sasl.username": "me", "sasl.password": "hunter2", "sasl.mechanism": "PLAIN"}


@pytest.mark.parametrize(
    ("protocol", "mechanism", "warned"),
    [
        ("sasl_plaintext", "PLAIN", 1),
        ("sasl_plaintext", "SCRAM-SHA-256", 0),
        ("sasl_ssl", "PLAIN", 0),
    ],
)
def test_a_password_in_the_clear_is_one_warning_without_it(
    protocol: str, mechanism: str, warned: int, caplog: pytest.LogCaptureFixture
) -> None:
    conf = {**PLAIN, "security.protocol": protocol, "sasl.mechanism": mechanism}
    parse(conf, servers=False)
    found = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(found) == warned
    assert all("in the clear" in each.getMessage() for each in found)
    assert "hunter2" not in caplog.text


def test_the_host_is_not_checked_where_the_certificate_is_not() -> None:
    algorithm, verification = (
        "ssl.endpoint.identification.algorithm",
        "enable.ssl.certificate.verification",
    )
    for conf, expected in (
        ({algorithm: "HTTPS"}, (True, True)),
        ({algorithm: "none"}, (True, False)),
        ({verification: False}, (False, False)),
        ({verification: "false", algorithm: "https"}, (False, False)),
    ):
        found = parse({"security.protocol": "ssl", **conf}, servers=False).tls
        assert found is not None
        assert (found.verify, found.check_hostname) == expected


def test_a_part_of_a_clients_certificate_that_is_missing_is_named() -> None:
    assert tls_problem(key_location="k") == (
        "ssl.key.location is set, and its certificate is missing:"
        " set ssl.certificate.location or ssl.certificate.pem"
    )
    assert tls_problem(certificate_pem=CERTIFICATE) == (
        "ssl.certificate.pem is set, and its key is missing: set ssl.key.location"
        " (it may be the same file) or ssl.key.pem"
    )
    assert tls_problem(key_password=SECRET) == (
        "ssl.key.password has no key: set ssl.key.location or ssl.key.pem"
    )
    assert tls_problem(key_pem=LOCKED, certificate_location="c") == (
        "ssl.key.pem is encrypted, and ssl.key.password is missing"
    )
    assert tls(key_pem=lambda: KEY, certificate_location="c").key_pem.reveal() == KEY


def test_a_wrong_value_is_not_also_called_missing() -> None:
    assert tls_problem(key_location="k", certificate_location=1) == (
        "ssl.certificate.location of type int: expected a path"
    )
    conf: dict[str, object] = {**LOGIN, "sasl.password": ""}
    assert problem(conf) == "sasl.password is empty"
    assert problem({**LOGIN, "sasl.mechanism": "x"}).count(";") == 0


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"ca_location": "x"}, {"ca_pem": CERTIFICATE}),
        ({"certificate_location": "x"}, {"certificate_pem": CERTIFICATE}),
        ({"key_location": "x"}, {"key_pem": KEY}),
    ],
)
def test_a_file_and_its_text_are_not_both_set(
    first: dict[str, object], second: dict[str, object]
) -> None:
    names = [f"ssl.{next(iter(each)).replace('_', '.')}" for each in (first, second)]
    text = tls_problem(**{"certificate_location": "c", "key_location": "k", **first, **second})
    assert f"{names[0]} and {names[1]} are both set: give one" in text


def test_ciphers_and_curves_that_python_cannot_use_are_refused() -> None:
    assert "`openssl ciphers -stdname`" in tls_problem(
        cipher_suites="TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
    )
    assert tls_problem(curves_list="P-521:P-384") == (
        "ssl.curves.list has several curves: Python's ssl takes one"
    )


@pytest.mark.parametrize("protocol", ["sasl_plaintext", "sasl_ssl"])
def test_a_missing_mechanism_is_an_error_as_the_default_cannot_be_served(protocol: str) -> None:
    for conf in ({}, {"sasl.username": "alice", "sasl.password": SECRET}):
        assert problem({"security.protocol": protocol, **conf}) == (
            "sasl.mechanism is missing: librdkafka's default, GSSAPI, is not supported;"
            " expected PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512 or OAUTHBEARER"
        )


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("key", ["sasl.username", "sasl.password"])
def test_a_login_needs_a_user_and_a_password(mechanism: str, key: str) -> None:
    conf: dict[str, object] = {**LOGIN, "sasl.mechanism": mechanism}
    assert problem({**conf, key: None}) == f"{key} is missing: {mechanism} needs it"
    found = parse(conf, servers=False).sasl
    assert found == SaslSettings(mechanism, "alice", Secret(SECRET, "sasl.password"))


def test_both_names_of_the_mechanism_are_one_option() -> None:
    conf = {**LOGIN, "sasl.mechanisms": LOGIN["sasl.mechanism"]}
    assert parse(conf, servers=False) == parse(LOGIN, servers=False)
    assert "are one option, and have different values" in problem(
        {**LOGIN, "sasl.mechanisms": "SCRAM-SHA-256"}
    )


def test_oauthbearer_needs_one_source_of_tokens() -> None:
    assert problem(dict(OAUTH)).startswith("OAUTHBEARER has no source of tokens: set oauth_cb, or")
    oauth_cb = {"oauth_cb": print}
    assert problem({**OAUTH, **oauth_cb, **OIDC}) == (
        "oauth_cb and sasl.oauthbearer.method=oidc are both set: tokens have one source"
    )
    unsecured = {
        "enable.sasl.oauthbearer.unsecure.jwt": True,
        "sasl.oauthbearer.config": "principal=alice",
    }
    assert "are both set" in problem({**OAUTH, **oauth_cb, **unsecured})
    for source in (oauth_cb, OIDC, unsecured):
        found = parse({**OAUTH, **source}, servers=False).sasl
        assert found is not None
        assert found.oauth is not None


def test_the_method_is_oidc_if_an_endpoint_is_the_only_source() -> None:
    given = {key: value for key, value in OIDC.items() if key != "sasl.oauthbearer.method"}
    secret = Secret(SECRET, "sasl.oauthbearer.client.secret")
    expected = OauthSettings(
        method="oidc", endpoint="https://idp/token", client_id="me", client_secret=secret
    )
    for conf in (OIDC, given):
        sasl = parse({**OAUTH, **conf}, servers=False).sasl
        assert sasl == SaslSettings("OAUTHBEARER", oauth=expected)
    assert "no source of tokens" in problem(
        {**OAUTH, **given, "sasl.oauthbearer.method": "default"}
    )


@pytest.mark.parametrize("key", [*OIDC][1:])
def test_what_client_credentials_lack_is_named(key: str) -> None:
    given = {each: value for each, value in OIDC.items() if each != key}
    needs = "sasl.oauthbearer.method=oidc needs it"
    assert problem({**OAUTH, **given}) == f"{key} is missing: {needs}"


def test_an_unsecured_token_needs_a_principal() -> None:
    assert problem({**OAUTH, "enable.sasl.oauthbearer.unsecure.jwt": "true"}) == (
        "sasl.oauthbearer.config is missing: enable.sasl.oauthbearer.unsecure.jwt needs it,"
        " as principal=NAME"
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sasl.oauthbearer.grant.type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
        ("sasl.oauthbearer.metadata.authentication.type", "azure_imds"),
        ("sasl.oauthbearer.assertion.claim.iss", "x"),
    ],
)
def test_other_ways_to_a_token_are_refused_with_the_one_that_is_left(key: str, value: str) -> None:
    text = problem({**OAUTH, **OIDC, key: value})
    assert text.startswith(key)
    assert "get the token in oauth_cb" in text


# Ways to write a secret wrongly; each has the mark.
FORMS: list[Any] = [
    *(SECRET, f"{SECRET}\n", f"{SECRET}\0", f"{SECRET}\udc80", SECRET * 4000, f"  {SECRET}"),
    *(SECRET.encode(), [SECRET], {SECRET: SECRET}, {"password": SECRET}, (SECRET,), {SECRET}),
    *(f"-----BEGIN PRIVATE KEY-----\n{SECRET}", f"a={SECRET}", f"auth={SECRET}", f"{SECRET}=,"),
    *(KEY.replace("BBBB", SECRET), f'PlainLoginModule required password="{SECRET}";'),
    *(f'PlainLoginModule required password="{SECRET}', f"PlainLoginModule required {SECRET}"),
    *(f"{SECRET} required;", f"https://user:{SECRET}@idp/", f"principal={SECRET} {SECRET}"),
    lambda: SECRET,
]
MAY_HAVE_SECRETS = [
    *(each.key for each in OPTIONS if each.area and each.kind not in ("mechanism", "choice")),
    *("ssl.keystore.key", "ssl.keystore.password", "ssl.truststore.password", "sasl.jaas.config"),
    *(key for key in REFUSED if "." not in key or "pass" in key or "pem" in key),
    *("sasl.pasword", "ssl.key.pasword", "sasl.oauthbearer.client.secrets"),
]
# The values of these are no secrets: an error may show them.
HARMLESS = {each.key for each in OPTIONS if each.kind in ("text", "flag", "versions")}
# A repr of the settings shows these.
SHOWN = {each.key for each in OPTIONS if each.kind in ("path", "name", "pairs")}


@pytest.mark.slow
def test_no_secret_is_in_what_a_wrong_configuration_raises_or_logs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    keys = sorted(set(MAY_HAVE_SECRETS) - HARMLESS)
    other = sorted({*JAVA_KEYS, *(each.key for each in OPTIONS)} - set(keys))
    refused = 0
    for _ in range(4000):
        conf: dict[str, object] = {
            "security.protocol": chance.choice(["ssl", "sasl_ssl", "sasl_plaintext", "x", None]),
            "sasl.mechanism": chance.choice(["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI"]),
        }
        conf |= {key: chance.choice(["x", "", 1, None, []]) for key in chance.sample(other, 2)}
        conf |= {key: chance.choice(FORMS) for key in chance.sample(keys, 3)}
        if chance.random() < 0.2:
            conf["bootstrap.servers"] = f"user:{SECRET}@host:9092"
        context = None
        try:
            text = repr(parse(conf, servers=False)) if not SHOWN & set(conf) else ""
        except ConfigError as error:
            refused += 1
            text = "".join(traceback.format_exception(error)) + repr(error) + repr(error.__dict__)
            context = error.__context__
        assert SECRET not in text, text
        assert context is None
    assert refused > 1000
    assert SECRET not in caplog.text
