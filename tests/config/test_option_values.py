"""The values of the security's options: paths, PEM, secrets, URLs, extensions, versions.

tests/config/test_config.py has the checks of the other kinds.
"""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from rdmeta.config.option_table import LONGEST_PEM, OPTIONS, Option
from rdmeta.config.option_values import KINDS
from rdmeta.config.secret import Secret

SECRET = "s3cr3t-marked"
KEY = "-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n"
OLD_KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AA\n\nBBBB\n"
    "-----END RSA PRIVATE KEY-----\n"
)
BY_KEY = {option.key: option for option in OPTIONS}


def checked(key: str, value: object) -> object:
    return KINDS[BY_KEY[key].kind](BY_KEY[key], value)


def problem(key: str, value: object) -> str:
    with pytest.raises(ValueError, match="^[: ]") as caught:
        checked(key, value)
    assert SECRET not in str(caught.value)
    return str(caught.value)


def of_kind(kind: str) -> list[Option]:
    return [option for option in OPTIONS if option.kind == kind]


def test_a_text_has_32767_bytes_at_most() -> None:
    longest = "\N{SNOWMAN}" * 10_922 + "a"
    assert checked("client.id", longest) == longest
    assert "text of at most 32767 bytes" in problem("client.id", longest + "a")


@pytest.mark.parametrize("option", of_kind("path"), ids=lambda each: each.key)
def test_a_path_is_text_or_a_path_and_no_pem(option: Option) -> None:
    for value in ("/etc/ca.pem", Path("/etc/ca.pem")):
        assert checked(option.key, value) == "/etc/ca.pem"
    assert problem(option.key, b"/x") == " of type bytes: expected a path"
    assert problem(option.key, "/x\0") == ": a path has no NUL"
    text = problem(option.key, KEY.replace("BBBB", SECRET))
    assert text.startswith(": it is text in PEM, not a path")
    other = option.key.replace("location", "pem")
    assert (f"; {other} takes such text" in text) is (other in BY_KEY)


@pytest.mark.parametrize(
    "option", of_kind("certificates") + of_kind("private key"), ids=lambda each: each.key
)
def test_a_pem_is_whole_text_of_the_right_sort(option: Option) -> None:
    path = option.key.replace("pem", "location")
    assert problem(option.key, f"/etc/{SECRET}") == (
        f": it is not text in PEM, which has a line -----BEGIN ...; {path} takes the path of a file"
    )
    assert "is cut off" in problem(option.key, f"-----BEGIN PRIVATE KEY-----\n{SECRET}")
    other = "-----BEGIN X-----\nAAAA\n-----END X-----"
    assert problem(option.key, other).startswith(": the text in PEM has no ")
    assert "longer than" in problem(option.key, "-" * (LONGEST_PEM + 1))
    assert problem(option.key, b"x").startswith(" of type bytes: expected ")
    assert checked(option.key, " \n") == ""


def test_a_pem_that_lost_its_line_breaks_is_read() -> None:
    trustme = pytest.importorskip("trustme")
    pem = trustme.CA().cert_pem.bytes().decode()
    body = "".join(pem.splitlines()[1:-1])
    head, foot = pem.splitlines()[0], pem.splitlines()[-1]
    for text in (
        pem,
        pem.replace("\n", "\\n"),
        pem.replace("\n", "\\r\\n"),
        pem.replace("\n", " "),
        pem.replace("\n", "\r\n"),
        f"{head}{body}{foot}",
        f"Subject: x\n{pem}after\n",
    ):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=str(checked("ssl.ca.pem", text)))
        assert len(context.get_ca_certs()) == 1


def test_a_key_with_headers_stays_as_it_is() -> None:
    key = checked("ssl.key.pem", OLD_KEY)
    assert isinstance(key, Secret)
    assert key.reveal() == OLD_KEY
    assert key.is_encrypted_pem()
    plain = checked("ssl.key.pem", KEY)
    assert isinstance(plain, Secret)
    assert not plain.is_encrypted_pem()


@pytest.mark.parametrize("option", of_kind("secret") + of_kind("name"), ids=lambda each: each.key)
def test_a_secret_is_text_that_a_login_can_use(option: Option) -> None:
    assert problem(option.key, "") == " is empty"
    assert problem(option.key, f"{SECRET}\n") == " ends with a line break: strip it"
    assert problem(option.key, f"{SECRET}\0") == " has a NUL character"
    assert problem(option.key, f"{SECRET}\udc80") == ": not UTF-8"
    assert "of at most 32767 bytes" in problem(option.key, SECRET * 5000)
    for value in (SECRET.encode(), [SECRET], {SECRET: SECRET}, 1.5, True, 10**5000):
        assert f" of type {type(value).__name__}: expected text" in problem(option.key, value)


@pytest.mark.parametrize(
    "option",
    of_kind("secret") + of_kind("name") + of_kind("private key"),
    ids=lambda each: each.key,
)
def test_a_secret_may_be_a_callable_which_is_not_asked(option: Option) -> None:
    def fail() -> str:
        raise AssertionError

    found = checked(option.key, fail)
    assert found == Secret(fail, option.key)


def test_a_secret_hides_its_text_and_a_user_name_is_shown() -> None:
    assert checked("sasl.password", 1234) == Secret("1234", "sasl.password")
    assert checked("sasl.username", "alice") == "alice"


def test_a_mechanism_is_one_of_four_in_any_case() -> None:
    assert checked("sasl.mechanism", " scram-sha-256 ") == "SCRAM-SHA-256"
    expected = "expected PLAIN or SCRAM-SHA-256 or SCRAM-SHA-512 or OAUTHBEARER"
    assert problem("sasl.mechanism", "gssapi") == (
        f" = 'GSSAPI': GSSAPI (Kerberos) is not supported; {expected}"
    )
    assert problem("sasl.mechanism", "SCRAM-SHA256") == f" = 'SCRAM-SHA256': {expected}"
    assert problem("sasl.mechanism", "PLAIN,OAUTHBEARER").endswith(expected)
    assert "OAUTHBEARER and oauth_cb" in problem("sasl.mechanism", "AWS_MSK_IAM")
    assert problem("sasl.mechanism", 1) == f" = 1: {expected}"


def test_a_callback_can_be_called() -> None:
    assert checked("oauth_cb", print) is print
    assert problem("oauth_cb", SECRET) == ": expected a callable"


def test_a_url_is_one_of_http_without_a_password() -> None:
    key = "sasl.oauthbearer.token.endpoint.url"
    for url in ("https://idp:8443/token?a=b@c", "http://localhost", "HTTPS://[::1]:1/"):
        assert checked(key, f" {url} ") == url
    for wrong in (f"https://u:{SECRET}@idp/", "idp/token", "file:///x", "https://", "http:// x"):
        assert problem(key, wrong) == ": expected http://... or https://..."


def test_extensions_are_pairs_with_names_of_letters() -> None:
    key = "sasl.oauthbearer.extensions"
    found = checked(key, "logicalCluster=lkc-1, pool=a=b ,")
    assert found == (("logicalCluster", "lkc-1"), ("pool", "a=b"))
    for wrong in (SECRET, f"a-b={SECRET}", f"a={SECRET}\x01", f"={SECRET}"):
        assert "has only letters (RFC 7628)" in problem(key, wrong)
    assert "the name auth" in problem(key, f"auth={SECRET}")
    assert problem(key, f"a={SECRET},a=b") == ": an extension is there twice"


def test_versions_of_tls_are_those_that_python_speaks() -> None:
    key = "ssl.enabled.protocols"
    assert checked(key, "TLSv1.3,TLSv1.2") == ("TLSv1.2", "TLSv1.3")
    assert checked(key, "TLSv1, TLSv1.1 ,TLSv1.2") == ("TLSv1.2",)
    for wrong in ("TLSv1.1", "", "TLSv1.2,TLSv9", 1):
        assert f" = {wrong!r}: expected TLSv1.2 or TLSv1.3" in problem(key, wrong)
