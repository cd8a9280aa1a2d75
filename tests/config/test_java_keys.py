"""A properties file that works with a Java client works here, or the error says what to convert."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rdmeta import ConfigError
from rdmeta.config import Config, load, parse
from rdmeta.config.secret import Secret
from rdmeta.config.security_settings import OauthSettings, SaslSettings, TlsSettings

SERVERS = "bootstrap.servers=kafka-1:9093\n"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n"
SECRET = "s3cr3t-marked"
MODULE = "org.apache.kafka.common.security"
OAUTH = f"{MODULE}.oauthbearer.OAuthBearerLoginModule required"


@pytest.fixture
def parsed(tmp_path: Path) -> Any:
    """Returns a function that parses the text of a properties file."""

    def parse_file(text: str) -> Config:
        path = tmp_path / "client.properties"
        path.write_text(SERVERS + text)
        return parse(load(path))

    return parse_file


def problem(**conf: object) -> str:
    """Returns the error of keys in which "_" stands for "."."""
    given = {key.replace("_", "."): value for key, value in conf.items()}
    with pytest.raises(ConfigError) as caught:
        parse({"security.protocol": "SSL", **given}, servers=False)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def sasl_problem(mechanism: str, jaas: object, **conf: object) -> str:
    return problem(
        security_protocol="SASL_SSL", sasl_mechanism=mechanism, sasl_jaas_config=jaas, **conf
    )


def test_a_file_with_a_login_and_a_truststore_in_pem_is_understood(parsed: Any) -> None:
    config = parsed(
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.jaas.config={MODULE}.scram.ScramLoginModule required \\\n"
        f'  username="alice" \\\n  password="{SECRET}\\\\"!";\n'
        "ssl.truststore.type=PEM\n"
        "ssl.truststore.location=/etc/kafka/ca.pem\n"
        "ssl.endpoint.identification.algorithm=\n"
        "ssl.protocol=TLSv1.3\nssl.enabled.protocols=TLSv1.3,TLSv1.1\n"
        "sasl.login.refresh.window.factor=0.8\n"
    )
    assert config.tls == TlsSettings(
        ca_location="/etc/kafka/ca.pem", check_hostname=False, lowest_version="TLSv1.3"
    )
    password = Secret(f'{SECRET}"!', "sasl.password")
    assert config.sasl == SaslSettings("SCRAM-SHA-512", "alice", password)


def test_stores_in_pem_are_files_or_text(parsed: Any) -> None:
    stores = "security.protocol=SSL\nssl.keystore.type=pem\nssl.truststore.type=PEM\n"
    config = parsed(f"{stores}ssl.keystore.location=/client.pem\nssl.key.password={SECRET}\n")
    assert config.tls == TlsSettings(
        certificate_location="/client.pem",
        key_location="/client.pem",
        key_password=Secret(SECRET, "ssl.key.password"),
    )
    certificate, key = CERTIFICATE.replace("\n", "\\n"), KEY.replace("\n", " \\\n")
    config = parsed(
        f"{stores}ssl.keystore.certificate.chain={certificate}\n"
        f"ssl.keystore.key={key}\nssl.truststore.certificates={certificate * 2}\n"
    )
    assert config.tls.certificate_pem.split() == CERTIFICATE.split()
    assert config.tls.ca_pem.split() == CERTIFICATE.split() * 2
    assert config.tls.key_pem.reveal() == KEY


@pytest.mark.parametrize(
    ("store", "conf", "command"),
    [
        ("truststore", {"location": "t.jks"}, "keytool -list -rfc -keystore t.jks > ca.pem"),
        ("truststore", {"location": "a b", "type": "JKS"}, "-keystore 'a b' > ca.pem"),
        ("truststore", {"location": "t.p12"}, "openssl pkcs12 -in t.p12 -nokeys -out ca.pem"),
        ("truststore", {"location": "t", "type": "pkcs12"}, "openssl pkcs12 -in t -nokeys"),
        (
            "keystore",
            {"location": "k.jks"},
            "keytool -importkeystore -srckeystore k.jks -destkeystore client.p12 -deststoretype"
            " PKCS12 && openssl pkcs12 -in client.p12 -out client.pem",
        ),
        ("keystore", {"location": "k.p12"}, "openssl pkcs12 -in k.p12 -out client.pem"),
        ("keystore", {"location": "k"}, "openssl pkcs12 -in k -out client.pem"),
        ("keystore", {"location": 7}, "openssl pkcs12 -in PATH -out client.pem"),
        ("keystore", {"location": KEY}, "openssl pkcs12 -in PATH -out client.pem"),
    ],
)
def test_a_store_in_another_format_is_an_error_with_the_command(
    store: str, conf: dict[str, object], command: str
) -> None:
    given = {f"ssl_{store}_{name}": value for name, value in conf.items()}
    text = problem(**given, **{f"ssl_{store}_password": SECRET})
    assert text.startswith(f"ssl.{store}.location is a file of type ")
    assert command in text
    assert "; ssl" not in text


def test_the_commands_of_openssl_make_files_that_python_reads(tmp_path: Path) -> None:
    import ssl

    trustme = pytest.importorskip("trustme")
    cryptography = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl command")
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import pkcs12

    issued = trustme.CA().issue_cert("client")
    key = cryptography.load_pem_private_key(issued.private_key_pem.bytes(), None)
    certificate = x509.load_pem_x509_certificate(issued.cert_chain_pems[0].bytes())
    store = pkcs12.serialize_key_and_certificates(
        b"client", key, certificate, None, cryptography.BestAvailableEncryption(b"store")
    )
    (tmp_path / "k.p12").write_bytes(store)
    text = problem(ssl_keystore_location="k.p12")
    command = text.partition("`")[2].partition("`")[0]
    passwords = " -passin pass:store -passout pass:secret"
    subprocess.run(command + passwords, shell=True, cwd=tmp_path, check=True, timeout=50)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(tmp_path / "client.pem", password="secret")


def test_what_a_store_lacks_or_has_too_much_is_named() -> None:
    assert problem(ssl_truststore_location="ca.pem") == (
        "ssl.truststore.type is missing: a file in PEM needs ssl.truststore.type=PEM"
    )
    assert problem(ssl_keystore_location="client.pem") == (
        "ssl.keystore.type is missing: a file in PEM needs ssl.keystore.type=PEM"
    )
    assert problem(ssl_truststore_certificates=CERTIFICATE) == (
        "ssl.truststore.certificates needs ssl.truststore.type=PEM"
    )
    assert "ssl.keystore.key need ssl.keystore.type=PEM" in problem(ssl_keystore_key=KEY)
    assert problem(ssl_keystore_password=SECRET) == (
        "ssl.keystore.password has no ssl.keystore.location"
    )
    both = {"ssl_keystore_type": "PEM", "ssl_keystore_location": "x"}
    assert problem(**both, ssl_keystore_password=SECRET) == (
        "ssl.keystore.password is set, but a file in PEM has none: its key has ssl.key.password"
    )
    assert problem(**both, ssl_keystore_key=KEY) == (
        "ssl.keystore.location and ssl.keystore.key are both set: give one"
    )
    assert problem(**both, ssl_certificate_location="y") == (
        "ssl.certificate.location and ssl.keystore.location are one option,"
        " and have different values"
    )


@pytest.mark.parametrize(
    ("mechanism", "jaas", "cause"),
    [
        ("PLAIN", f"{MODULE}.plain.PlainLoginModule required;", "no username and no password"),
        ("PLAIN", f'PlainLoginModule required username="{SECRET}";', "has no password"),
        (
            "SCRAM-SHA-256",
            f'PlainLoginModule required username="a" password="{SECRET}";',
            "has PlainLoginModule, but sasl.mechanism is SCRAM-SHA-256",
        ),
        ("PLAIN", SECRET, "has no flag"),
        ("PLAIN", f"{SECRET} required;", "a login module that is not known"),
        ("PLAIN", SECRET.encode(), "of type bytes: expected text"),
        ("PLAIN", f'Krb5LoginModule required keyTab="{SECRET}";', "GSSAPI (Kerberos) is not"),
        ("OAUTHBEARER", "software.amazon.IAMLoginModule required;", "examples/msk_iam.py"),
        (
            "SCRAM-SHA-256",
            f'ScramLoginModule required username="a" password="{SECRET}" tokenauth="true";',
            "delegation tokens",
        ),
        ("OAUTHBEARER", f'{OAUTH} unsecuredLoginStringClaim_scope="{SECRET}";', "Claim_sub="),
        ("OAUTHBEARER", f'{OAUTH} unsecuredLoginStringClaim_sub="{SECRET} x";', "has a space"),
        ("OAUTHBEARER", f'{OAUTH} clientId="a" extension_x="{SECRET},b";', "has a comma"),
    ],
)
def test_a_login_that_cannot_be_used_is_one_problem(
    mechanism: str, jaas: object, cause: str
) -> None:
    text = sasl_problem(mechanism, jaas)
    assert text.startswith("sasl.jaas.config")
    assert cause in text
    assert "; " not in text.replace("; put", "").replace("; set", "")


def test_a_login_that_contradicts_librdkafkas_option_is_refused() -> None:
    jaas = f'PlainLoginModule required username="alice" password="{SECRET}";'
    assert sasl_problem("PLAIN", jaas, sasl_username="bob") == (
        "sasl.jaas.config and sasl.username are one option, and have different values"
    )
    conf = {"security.protocol": "SASL_SSL", "sasl.jaas.config": jaas, "sasl.username": "alice"}
    assert parse({**conf, "sasl.mechanism": "PLAIN"}, servers=False).sasl is not None


def test_client_credentials_of_java_get_tokens_by_oidc(parsed: Any) -> None:
    config = parsed(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={OAUTH} clientId="a" clientSecret="{SECRET}" scope="read write" \\\n'
        ' extension_logicalCluster="lkc-1" extension_pool="p";\n'
        "sasl.oauthbearer.token.endpoint.url=https://idp/token\n"
        f"sasl.login.callback.handler.class={MODULE}.oauthbearer.OAuthBearerLoginCallbackHandler\n"
    )
    assert config.sasl.oauth == OauthSettings(
        method="oidc",
        endpoint="https://idp/token",
        client_id="a",
        client_secret=Secret(SECRET, "sasl.oauthbearer.client.secret"),
        scope="read write",
        extensions=(("logicalCluster", "lkc-1"), ("pool", "p")),
    )


def test_an_unsecured_token_of_java_has_the_same_claims(parsed: Any) -> None:
    config = parsed(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={OAUTH} unsecuredLoginStringClaim_azp="alice" \\\n'
        ' unsecuredLoginPrincipalClaimName="azp" unsecuredLoginLifetimeSeconds="60" \\\n'
        ' unsecuredLoginStringClaim_scope="a b" extension_x="1";\n'
    )
    assert config.sasl.oauth.unsecured
    assert config.sasl.oauth.config.reveal() == (
        "principalClaimName=azp principal=alice lifeSeconds=60 scope=a,b extension_x=1"
    )


@pytest.mark.parametrize(
    "key", ["sasl.login.callback.handler.class", "sasl.oauthbearer.jwt.retriever.class"]
)
def test_a_class_of_java_is_refused_unless_it_is_kafkas_own(key: str) -> None:
    conf = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "oauth_cb": print}
    with pytest.raises(ConfigError, match="no class of Java but Kafka's own is known"):
        parse({**conf, key: "com.Other"}, servers=False)


def test_a_key_that_has_no_effect_here_has_a_value_without_one() -> None:
    assert problem(ssl_protocol="SSLv3") == "ssl.protocol: expected TLS or TLSv1.2 or TLSv1.3"
    key = "sasl.oauthbearer.header.urlencode"
    conf = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "oauth_cb": print}
    with pytest.raises(ConfigError, match=f"^{key}: expected false$"):
        parse({**conf, key: "true"}, servers=False)
    assert parse({**conf, key: "false", "sasl.login.read.timeout.ms": "1"}, servers=False).sasl
