"""Contexts from the settings: trust, identity, revocation, ciphers; new ones when files change."""

from __future__ import annotations

import datetime
import os
import ssl
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from certificates import Authority
from processes import held
from test_tunnel import joined, refusal

from rdmeta.config.secret import Secret
from rdmeta.config.security_settings import TlsSettings
from rdmeta.errors import ConfigError
from rdmeta.net.tls import Tls

ours, theirs = Authority(), Authority()


def secret(text: str, key: str = "ssl.key.pem") -> Secret:
    return Secret(text, key)


def damaged(pem: str) -> str:
    """Returns PEM text whose content is none."""
    return pem.replace(pem.splitlines()[1], "X" * 64, 1)


def wrong(settings: TlsSettings) -> str:
    """Returns the text of the error of a first context."""
    with pytest.raises(ConfigError) as caught:
        Tls(settings).context()
    assert not caught.value.retriable
    return str(caught.value)


# ---- trust ----


def test_a_file_of_certificates_is_trusted(tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    path.write_text(theirs.pem + ours.pem)
    settings = TlsSettings(ca_location=str(path))
    for authority in (ours, theirs):
        assert joined(authority.server("localhost"), settings)[0].is_ready
    assert f"now those in {path} are trusted" in refusal(Authority().server("localhost"), settings)


@pytest.mark.parametrize("names", [["ca.pem"], ["a.txt", "our.crt"]])
def test_a_directory_of_certificates_is_trusted(tmp_path: Path, names: list[str]) -> None:
    (tmp_path / names[0]).write_text("no certificate")
    (tmp_path / "folder").mkdir()
    ours.write(tmp_path, names[-1])
    settings = TlsSettings(ca_location=str(tmp_path))
    assert joined(ours.server("localhost"), settings)[0].is_ready
    assert "is not trusted" in refusal(theirs.server("localhost"), settings)


def test_a_directory_with_the_links_of_openssl_is_trusted(tmp_path: Path) -> None:
    path = ours.write(tmp_path)
    name = ["openssl", "x509", "-noout", "-hash", "-in", path]
    try:
        found = subprocess.run(name, capture_output=True, text=True, check=True).stdout.strip()
    except FileNotFoundError:
        pytest.skip("this machine has no openssl")
    folder = tmp_path / "hashed"
    folder.mkdir()
    (folder / f"{found}.0").symlink_to(path)
    theirs.write(folder, "theirs.pem")
    settings = TlsSettings(ca_location=str(folder))
    assert joined(ours.server("localhost"), settings)[0].is_ready
    assert "is not trusted" in refusal(theirs.server("localhost"), settings)


def test_the_systems_certificates_are_trusted_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", ours.write(tmp_path))
    assert joined(ours.server("localhost"), TlsSettings())[0].is_ready


def test_a_certificate_that_is_no_root_is_trusted_if_it_is_in_the_file() -> None:
    child = Authority()
    child.ca = ours.ca.create_child_ca()
    settings = TlsSettings(ca_pem=child.ca.cert_pem.bytes().decode())
    assert joined(child.server("localhost"), settings)[0].is_ready


def test_a_ca_that_cannot_be_read_names_the_option_and_the_file(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    assert wrong(TlsSettings(ca_location=missing)) == (
        f"ssl.ca.location = {missing}: No such file or directory"
    )
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "no file of the directory has a certificate in PEM" in wrong(
        TlsSettings(ca_location=str(empty))
    )
    text = tmp_path / "text"
    text.write_text("hello")
    assert wrong(TlsSettings(ca_location=str(text))) == (
        f"ssl.ca.location = {text}: no certificate in PEM is in it"
    )
    text.write_bytes(b"\xfe\xed\xfe\xed" + bytes(20))
    assert "it is a Java keystore: convert it with keytool" in wrong(
        TlsSettings(ca_location=str(text))
    )
    text.write_bytes(b"\x30\x82" + bytes(20))
    assert "it is DER or PKCS#12: convert it" in wrong(TlsSettings(ca_location=str(text)))
    assert wrong(TlsSettings(ca_pem=damaged(ours.pem))).startswith(
        "ssl.ca.pem: a certificate in it is damaged: "
    )


# ---- revocation ----


def test_a_revoked_certificate_is_refused(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    identity = ours.issue("localhost")
    context.load_cert_chain(*identity.write(tmp_path, "server"))
    path = tmp_path / "crl.pem"
    settings = TlsSettings(ca_pem=ours.pem, crl_location=str(path))
    path.write_text(ours.revocations())
    assert joined(context, settings)[0].is_ready
    path.write_text(ours.revocations(identity.certificate))
    assert "is revoked, says ssl.crl.location = " in refusal(context, settings)
    path.write_text(ours.revocations(until=datetime.datetime(2001, 1, 1)))
    assert "is out of date" in refusal(context, settings)
    path.write_text(theirs.revocations())
    assert "has no list of the CA (trustme" in refusal(context, settings)
    path.write_text(ours.pem)
    assert "no list of revoked certificates (X509 CRL) in PEM is in it" in wrong(settings)
    path.write_text(damaged(ours.revocations()))
    assert "the list in it is damaged" in wrong(settings)


# ---- identity ----


def test_a_certificate_and_a_key_are_loaded_from_files_and_from_text(tmp_path: Path) -> None:
    identity = ours.issue("client")
    certificate, key = identity.write(tmp_path, "client")
    both = tmp_path / "both.pem"
    both.write_text(identity.key + identity.certificate)
    server = ours.server("localhost", clients=ours)
    for settings in (
        TlsSettings(ca_pem=ours.pem, certificate_location=certificate, key_location=key),
        TlsSettings(ca_pem=ours.pem, certificate_location=str(both), key_location=str(both)),
        TlsSettings(ca_pem=ours.pem, certificate_location=str(both)),
        TlsSettings(
            ca_pem=ours.pem, certificate_pem=identity.certificate, key_pem=secret(identity.key)
        ),
    ):
        tunnel, peer = joined(server, settings)
        assert tunnel.read(1) == b""
        assert peer.tls.getpeercert()


def test_an_encrypted_key_is_opened_by_the_password() -> None:
    identity = ours.issue("client")
    settings = TlsSettings(
        certificate_pem=identity.certificate, key_pem=secret(identity.encrypted("hunter2"))
    )
    password = secret("hunter2", "ssl.key.password")
    assert Tls(replace(settings, key_password=password)).context()
    assert wrong(settings) == ("ssl.key.pem: the key is encrypted: set ssl.key.password")
    for bad in ("hunter3", "x" * 2000):
        said = wrong(replace(settings, key_password=secret(bad, "ssl.key.password")))
        assert said.startswith("ssl.key.password: ")
        assert bad not in said


def test_a_wrong_identity_names_the_option_and_the_file(tmp_path: Path) -> None:
    one, other = ours.issue("one"), ours.issue("other")
    certificate, key = one.write(tmp_path, "one")
    pem = TlsSettings(certificate_pem=one.certificate)
    assert wrong(TlsSettings(certificate_location=certificate)) == (
        f"ssl.certificate.location = {certificate}: no private key in PEM is in it;"
        " set ssl.key.location"
    )
    assert wrong(TlsSettings(certificate_location=certificate, key_pem=secret(other.key))) == (
        f"ssl.key.pem: the key is not the one of ssl.certificate.location = {certificate}"
    )
    assert wrong(TlsSettings(certificate_location=key, key_location=key)) == (
        f"ssl.certificate.location = {key}: no certificate in PEM is in it"
    )
    assert wrong(TlsSettings(key_location=key)) == (
        f"ssl.key.location = {key}: it needs ssl.certificate.location or ssl.certificate.pem"
    )
    assert wrong(replace(pem, key_location="/nowhere/key")) == (
        "ssl.key.location = /nowhere/key: No such file or directory"
    )
    bad = secret(damaged(one.key))
    said = wrong(replace(pem, key_pem=bad))
    assert said.startswith("ssl.certificate.pem: it cannot be used with ssl.key.pem: ")
    assert one.key.splitlines()[1] not in said


def test_text_in_pem_reaches_openssl_through_memory_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    load = ssl.SSLContext.load_cert_chain

    def note(self: ssl.SSLContext, *args: object) -> None:
        loaded.extend(os.readlink(str(path)) for path in args[:2])
        load(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", note)
    identity = ours.issue("client")
    before = held()
    Tls(TlsSettings(certificate_pem=identity.certificate, key_pem=secret(identity.key))).context()
    assert [path.partition(":")[0] for path in loaded] == ["/memfd", "/memfd"]
    assert held() <= before


def test_a_machine_without_proc_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(self: ssl.SSLContext, *args: object, **more: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", load)
    assert "/proc is not mounted" in wrong(TlsSettings(ca_pem=ours.pem))


# ---- ciphers and curves ----


def test_ciphers_and_curves_that_openssl_does_not_know_name_the_option() -> None:
    assert "ssl.cipher.suites = TLS_RSA_X: OpenSSL knows none" in wrong(
        TlsSettings(ciphers="TLS_RSA_X")
    )
    assert "ssl.curves.list = nope: OpenSSL knows no curve" in wrong(TlsSettings(curves="nope"))
    server = ours.server("localhost")
    assert joined(server, TlsSettings(ca_pem=ours.pem, curves="secp384r1"))[0].is_ready


# ---- changes ----


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, TlsSettings]:
    certificate, key = ours.issue("client").write(tmp_path, "client")
    return (
        tmp_path,
        TlsSettings(
            ca_location=ours.write(tmp_path), certificate_location=certificate, key_location=key
        ),
    )


def test_the_context_stays_while_nothing_changes(files: tuple[Path, TlsSettings]) -> None:
    tls = Tls(files[1])
    assert tls.context() is tls.context()


def test_a_replaced_ca_counts_from_the_next_connection_on(files: tuple[Path, TlsSettings]) -> None:
    folder, settings = files
    tls = Tls(settings)
    first = tls.context()
    (folder / "new").write_text(theirs.pem)
    (folder / "new").replace(folder / "ca.pem")
    second = tls.context()
    assert second is not first
    assert [each["issuer"] for each in second.get_ca_certs()] != [
        each["issuer"] for each in first.get_ca_certs()
    ]


def test_a_replaced_list_of_revoked_certificates_counts_from_the_next_connection_on(
    tmp_path: Path,
) -> None:
    path, revoked = tmp_path / "crl.pem", ours.issue("localhost")
    path.write_text(ours.revocations())
    tls = Tls(TlsSettings(ca_pem=ours.pem, crl_location=str(path)))
    first = tls.context()
    assert tls.context() is first
    (tmp_path / "new").write_text(ours.revocations(revoked.certificate))
    (tmp_path / "new").replace(path)
    assert tls.context() is not first


def test_a_replaced_file_of_the_system_counts_from_the_next_connection_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "system.pem"
    file.write_text(theirs.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    tls = Tls(TlsSettings())
    before = tls.context()
    assert tls.context() is before
    file.write_text(ours.pem + theirs.pem)
    assert tls.context() is not before


def test_a_new_file_in_a_directory_counts_from_the_next_connection_on(tmp_path: Path) -> None:
    ours.write(tmp_path, "1.pem")
    tls = Tls(TlsSettings(ca_location=str(tmp_path)))
    assert len(tls.context().get_ca_certs()) == 1
    theirs.write(tmp_path, "2.pem")
    assert len(tls.context().get_ca_certs()) == 2


def test_an_identity_that_is_half_replaced_may_be_tried_again(
    files: tuple[Path, TlsSettings],
) -> None:
    folder, settings = files
    tls = Tls(settings)
    first = tls.context()
    fresh = ours.issue("client")
    (folder / "client.pem").write_text(fresh.certificate)
    for _ in range(2):
        with pytest.raises(ConfigError, match="the key is not the one of") as caught:
            tls.context()
        assert caught.value.retriable, "the files were good, so they may be good again"
    (folder / "client.key").write_text(fresh.key)
    assert tls.context() is not first


def test_a_password_is_asked_for_each_time_and_a_new_one_makes_a_new_context() -> None:
    identity = ours.issue("client")
    keys = {"old": identity.encrypted("old"), "new": identity.encrypted("new")}
    now, asked = "old", []

    def password() -> str:
        asked.append(now)
        return now

    tls = Tls(
        TlsSettings(
            certificate_pem=identity.certificate,
            key_pem=Secret(lambda: keys[now], "ssl.key.pem"),
            key_password=Secret(password, "ssl.key.password"),
        )
    )
    first = tls.context()
    assert tls.context() is first
    now = "new"
    assert tls.context() is not first
    assert asked[-1] == "new"
