"""TLS without a socket: the handshake, bytes both ways, and each way in which it fails."""

from __future__ import annotations

import os
import random
import ssl
from contextlib import suppress
from datetime import datetime, timezone

import pytest
from certificates import LONG_AGO, Authority

from rdmeta.config.secret import Secret
from rdmeta.config.security_settings import TlsSettings
from rdmeta.errors import RequestTimedOutError, TlsError
from rdmeta.net.tls import Tls, Tunnel

ours, theirs = Authority(), Authority()
TRUSTING = TlsSettings(ca_pem=ours.pem)


class Peer:
    """The server's side, joined to a tunnel by memory."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)
        self.is_ready = False
        self.error: ssl.SSLError | None = None

    def take(self, data: bytes) -> bytes:
        """Takes the client's bytes; returns the server's."""
        self.incoming.write(data)
        if not self.is_ready and self.error is None:
            try:
                self.tls.do_handshake()
                self.is_ready = True
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError as error:
                self.error = error
        return self.outgoing.read()


def joined(
    context: ssl.SSLContext, settings: TlsSettings = TRUSTING, host: str = "localhost"
) -> tuple[Tunnel, Peer]:
    """Returns both sides after the handshake, and what the server said right after it."""
    tunnel, peer = Tunnel(Tls(settings).context(), settings, host), Peer(context)
    while data := tunnel.data_to_send():
        if said := peer.take(data):
            tunnel.receive(said)
    return tunnel, peer


def refusal(
    context: ssl.SSLContext, settings: TlsSettings = TRUSTING, host: str = "localhost"
) -> str:
    """Returns the text of the error of the handshake, or of the first read."""
    with pytest.raises(TlsError) as caught:
        joined(context, settings, host)[0].read(100)
    assert not caught.value.retriable
    return str(caught.value)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_bytes_go_both_ways_after_the_handshake(version: ssl.TLSVersion) -> None:
    tunnel, peer = joined(ours.server("localhost", highest=version))
    assert tunnel.is_ready
    assert tunnel.read(100) == b""
    tunnel.write(b"question")
    peer.take(tunnel.data_to_send())
    assert peer.tls.read(100) == b"question"
    peer.tls.write(b"answer")
    tunnel.receive(peer.outgoing.read())
    assert tunnel.read(100) == b"answer"
    assert not tunnel.is_over


def test_bytes_that_arrive_split_anywhere_are_read_whole() -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance = random.Random(seed)
    tunnel, peer = joined(ours.server("localhost"))
    body = os.urandom(300_000)
    peer.tls.write(body)
    encrypted, found = peer.outgoing.read(), bytearray()
    while encrypted:
        cut = chance.randrange(1, 40_000)
        tunnel.receive(encrypted[:cut])
        encrypted = encrypted[cut:]
        space = bytearray(chance.randrange(1, 50_000))
        while True:
            if chance.random() < 0.5:
                count = tunnel.read_into(memoryview(space))
                part = bytes(space[:count])
            else:
                part = tunnel.read(chance.randrange(1, 50_000))
            if not part:
                break
            found += part
    assert found == body


def resident() -> int:
    """Returns the bytes of memory that this process has in use."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def test_a_tunnel_keeps_little_memory_after_a_long_answer() -> None:
    """OpenSSL's memory for bytes that arrive grows with them, and never shrinks."""
    server, body, links = ours.server("localhost"), bytes(1_000_000), 60

    def carried() -> Tunnel:
        tunnel, peer = joined(server)
        peer.tls.write(body)
        while encrypted := peer.outgoing.read(1 << 18):
            tunnel.receive(encrypted)
            while tunnel.read(1 << 18):
                pass
        return tunnel

    kept = [carried() for _ in range(5)]
    before = resident()
    kept += [carried() for _ in range(links)]
    assert (resident() - before) / links < 270 << 10


def test_the_answer_in_the_same_bytes_as_the_end_of_the_handshake_is_read() -> None:
    tunnel, peer = (
        Tunnel(Tls(TRUSTING).context(), TRUSTING, "localhost"),
        Peer(ours.server("localhost", highest=ssl.TLSVersion.TLSv1_2)),
    )
    tunnel.receive(peer.take(tunnel.data_to_send()))
    last = peer.take(tunnel.data_to_send())
    assert peer.is_ready
    peer.tls.write(b"early")
    tunnel.receive(last + peer.outgoing.read())
    assert tunnel.read(100) == b"early"


def test_the_end_of_tls_is_seen_after_the_bytes_before_it() -> None:
    tunnel, peer = joined(ours.server("localhost"))
    peer.tls.write(b"last")
    with pytest.raises(ssl.SSLWantReadError):
        peer.tls.unwrap()
    tunnel.receive(peer.outgoing.read())
    assert tunnel.read(100) == b"last"
    assert tunnel.is_over
    assert tunnel.read(100) == b""


def test_damaged_bytes_fail_after_the_bytes_before_them_and_at_each_further_call() -> None:
    tunnel, peer = joined(ours.server("localhost"))
    peer.tls.write(b"good")
    good = peer.outgoing.read()
    peer.tls.write(b"bad")
    bad = bytearray(peer.outgoing.read())
    bad[-1] ^= 1
    tunnel.receive(good + bytes(bad))
    assert tunnel.read(100) == b"good"
    for _ in range(2):
        with pytest.raises(TlsError, match="TLS failed: decryption failed or bad record mac"):
            tunnel.read(100)
    with pytest.raises(TlsError):
        tunnel.write(b"more")


@pytest.mark.parametrize(
    ("issued", "host"),
    [
        ("localhost", "localhost"),
        ("kafka.example", "kafka.example."),
        ("*.kafka.example", "b1.kafka.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("fe80::1", "fe80::1%eth0"),
    ],
)
def test_a_certificate_for_the_name_or_address_is_accepted(issued: str, host: str) -> None:
    assert joined(ours.server(issued), host=host)[0].is_ready


def test_the_host_name_is_sent_so_that_the_server_can_choose_its_certificate() -> None:
    asked: list[str | None] = []
    context = ours.server("localhost", "127.0.0.1")
    context.sni_callback = lambda _, name, __: asked.append(name)
    joined(context)
    joined(context, host="127.0.0.1")
    assert asked == ["localhost", None], "an address is no server name (RFC 6066)"


def test_a_certificate_of_an_unknown_ca_names_its_issuer_and_the_option() -> None:
    said = refusal(theirs.server("localhost"))
    assert "issued by trustme v1.2.1, Testing CA #" in said
    assert "is not trusted" in said
    assert "set ssl.ca.location" in said
    assert "now those in ssl.ca.pem are trusted" in said
    assert "now the system's are trusted" in refusal(theirs.server("localhost"), TlsSettings())


def test_a_name_in_a_certificate_that_is_not_trusted_adds_no_line_to_a_log() -> None:
    said = refusal(Authority("Mallory\nERROR a line\x1b[2J" + "x" * 5000).server("localhost"))
    assert "Mallory ERROR a line\\x1b[2Jxxx" in said
    assert said.isprintable()
    assert len(said) < 1000


def test_a_certificate_for_another_host_says_for_which_ones_it_is() -> None:
    context = ours.server("kafka-1.example", "10.1.2.3")
    for host in ("localhost", "10.9.9.9"):
        said = refusal(context, host=host)
        assert said.startswith(
            f"the broker's certificate is not for {host!r}: it is for kafka-1.example, 10.1.2.3;"
        )
        assert "ssl.endpoint.identification.algorithm" in said


def test_the_host_name_is_not_checked_if_the_settings_say_so() -> None:
    settings = TlsSettings(ca_pem=ours.pem, check_hostname=False)
    assert joined(ours.server("other.example"), settings)[0].is_ready
    assert "is not trusted" in refusal(theirs.server("other.example"), settings)


def test_no_certificate_is_checked_if_the_settings_say_so() -> None:
    settings = TlsSettings(verify=False, check_hostname=False)
    assert joined(theirs.server("other.example", not_after=LONG_AGO), settings)[0].is_ready


def test_an_expired_certificate_says_when_it_expired() -> None:
    said = refusal(ours.server("localhost", not_after=LONG_AGO))
    assert "expired on Feb  3 00:00:00 2001 GMT: renew it on the broker" in said


def test_a_certificate_of_the_future_says_from_when_on_it_is_valid() -> None:
    context = ours.server("localhost", not_before=datetime(2900, 1, 1, tzinfo=timezone.utc))
    assert "is not valid before Jan  1 00:00:00 2900 GMT: correct the clock" in refusal(context)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_missing_client_certificate_names_the_options(version: ssl.TLSVersion) -> None:
    said = refusal(ours.server("localhost", clients=ours, highest=version))
    assert said.startswith("the broker wants a client certificate (TLS alert: ")
    assert said.endswith("set ssl.certificate.location and ssl.key.location")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("authority", "options", "alert"),
    [(theirs, {}, "unknown ca"), (ours, {"not_after": LONG_AGO}, "certificate expired")],
)
def test_a_refused_client_certificate_says_which_and_why(
    version: ssl.TLSVersion, authority: Authority, options: dict[str, object], alert: str
) -> None:
    certificate, key = authority.issue("client", **options)
    settings = TlsSettings(
        ca_pem=ours.pem, certificate_pem=certificate, key_pem=Secret(key, "ssl.key.pem")
    )
    said = refusal(ours.server("localhost", clients=ours, highest=version), settings)
    assert said.startswith(f"the broker refuses the client certificate (TLS alert: {alert}):")
    assert "ssl.certificate.pem" in said


def test_a_client_certificate_that_is_accepted_reaches_the_server() -> None:
    certificate, key = ours.issue("client")
    settings = TlsSettings(
        ca_pem=ours.pem, certificate_pem=certificate, key_pem=Secret(key, "ssl.key.pem")
    )
    tunnel, peer = joined(ours.server("localhost", clients=ours), settings)
    assert tunnel.read(100) == b""
    assert peer.tls.getpeercert()


def test_a_server_of_an_older_tls_is_refused() -> None:
    context = ours.server("localhost")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    said = refusal(context)
    assert "the broker speaks no version of TLS that this client does (TLSv1.2 and TLSv1.3)" in said
    assert "ssl.enabled.protocols" in said


def test_the_versions_are_those_of_the_settings() -> None:
    context = ours.server("localhost", highest=ssl.TLSVersion.TLSv1_2)
    settings = TlsSettings(ca_pem=ours.pem, lowest_version="TLSv1.3")
    assert "(TLSv1.3)" in refusal(context, settings)


def test_no_common_cipher_names_the_option() -> None:
    context = ours.server("localhost", highest=ssl.TLSVersion.TLSv1_2)
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    settings = TlsSettings(ca_pem=ours.pem, ciphers="ECDHE-ECDSA-AES256-GCM-SHA384")
    assert "check ssl.cipher.suites" in refusal(context, settings)
    settings = TlsSettings(ca_pem=ours.pem, ciphers="ECDHE-ECDSA-AES128-GCM-SHA256")
    tunnel, _ = joined(context, settings)
    assert tunnel._tls.cipher()[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"  # type: ignore[index]


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n", "the port speaks HTTP, not TLS"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "the port speaks SSH, not TLS"),
        (bytes(40), "the port does not speak TLS (its first bytes are"),
        (b"no", "set security.protocol to plaintext or sasl_plaintext"),
    ],
)
def test_a_port_without_tls_says_what_it_seems_to_be(first: bytes, expected: str) -> None:
    tunnel = Tunnel(Tls(TRUSTING).context(), TRUSTING, "localhost")
    with suppress(TlsError):
        tunnel.receive(first)  # two bytes are not enough
    with pytest.raises(TlsError) as caught:
        tunnel.closed()
    assert expected in str(caught.value)
    assert not caught.value.retriable


def test_a_port_that_closes_at_the_handshake_seems_to_speak_plaintext() -> None:
    tunnel = Tunnel(Tls(TRUSTING).context(), TRUSTING, "localhost")
    with pytest.raises(TlsError) as caught:
        tunnel.closed("reset the connection")
    assert str(caught.value) == (
        "the port reset the connection at the TLS handshake: it seems not to speak TLS; set"
        " security.protocol to plaintext or sasl_plaintext, or use the port of TLS"
    )
    assert not caught.value.retriable


def test_a_connection_that_breaks_in_the_handshake_may_be_tried_again() -> None:
    tunnel, peer = (
        Tunnel(Tls(TRUSTING).context(), TRUSTING, "localhost"),
        Peer(ours.server("localhost")),
    )
    tunnel.receive(peer.take(tunnel.data_to_send())[:50])
    with pytest.raises(TlsError, match="the broker closed the connection during the TLS") as caught:
        tunnel.closed()
    assert caught.value.retriable


def test_the_end_of_a_connection_after_the_handshake_is_for_the_session_to_explain() -> None:
    joined(ours.server("localhost"))[0].closed()


def test_a_time_out_says_how_far_the_handshake_came() -> None:
    context = Tls(TRUSTING).context()
    tunnel, peer = Tunnel(context, TRUSTING, "localhost"), Peer(ours.server("localhost"))
    with pytest.raises(RequestTimedOutError, match="no answer to the TLS handshake in time"):
        tunnel.timed_out()
    tunnel.receive(peer.take(tunnel.data_to_send())[:50])
    with pytest.raises(RequestTimedOutError, match="the TLS handshake was not over in time"):
        tunnel.timed_out()
    joined(ours.server("localhost"))[0].timed_out()


def test_the_server_is_told_why_its_certificate_is_refused() -> None:
    tunnel, peer = (
        Tunnel(Tls(TRUSTING).context(), TRUSTING, "localhost"),
        Peer(theirs.server("localhost")),
    )
    with pytest.raises(TlsError):
        tunnel.receive(peer.take(tunnel.data_to_send()))
    peer.take(tunnel.data_to_send())
    assert peer.error is not None
    assert peer.error.reason == "TLSV1_ALERT_UNKNOWN_CA"


@pytest.mark.parametrize("host", ["", "a" * 64 + ".example", ".", "a." * 128 + "a"])
def test_a_name_that_no_certificate_can_have_is_refused(host: str) -> None:
    with pytest.raises(TlsError, match="no certificate can have the name"):
        Tunnel(Tls(TRUSTING).context(), TRUSTING, host)
