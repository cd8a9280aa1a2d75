"""OIDC client credentials against a local token endpoint: what is asked, and each failure."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import pytest
import trustme
from waiting import PROMPT

from rdmeta.config.secret import Secret
from rdmeta.config.security_settings import OauthSettings
from rdmeta.errors import AuthenticationError, ConfigError
from rdmeta.net import oidc
from rdmeta.net.oauth import TokenSource

MARK = "m4rked-S3cret"
NOW = 1_700_000_000.0


class Asked(NamedTuple):
    path: str
    headers: dict[str, str]
    fields: dict[str, list[str]]


class Endpoint:
    """A token endpoint of one answer, which a test changes; `asked` are its requests."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.status = 200
        self.reason: str | None = None
        self.body: bytes | dict[str, Any] = {"access_token": "abc", "expires_in": 100}
        self.headers: dict[str, str] = {}
        self.delay = 0.0
        self.drip = 0.0
        self.header_drip = 0.0
        self.asked: list[Asked] = []
        self.over = threading.Event()
        self.server = ThreadingHTTPServer((host, 0), self._handler())
        self.server.daemon_threads = True

    @property
    def port(self) -> int:
        return self.server.server_address[1]

    def _handler(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.asked.append(Asked(self.path, dict(self.headers), parse_qs(body.decode())))
                self.answer()

            def do_GET(self) -> None:
                endpoint.asked.append(Asked(self.path, dict(self.headers), {}))
                self.answer()

            def answer(self) -> None:
                endpoint.over.wait(endpoint.delay)
                body = endpoint.body
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(endpoint.status, endpoint.reason)
                for name, value in endpoint.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                if endpoint.header_drip:
                    self.flush_headers()
                    for byte in b"X-Drip: " + b"y" * 100:
                        self.wfile.write(bytes([byte]))
                        time.sleep(endpoint.header_drip)
                self.end_headers()
                if endpoint.drip:
                    for byte in data:
                        self.wfile.write(bytes([byte]))
                        time.sleep(endpoint.drip)
                else:
                    self.wfile.write(data)

            def handle(self) -> None:
                try:
                    super().handle()
                except OSError:  # the client has gone
                    return

            def log_message(self, *args: Any) -> None:
                return

        return Handler


@contextmanager
def serving(endpoint: Endpoint) -> Iterator[Endpoint]:
    thread = threading.Thread(target=endpoint.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.over.set()
        endpoint.server.shutdown()
        endpoint.server.server_close()
        thread.join(10)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving(Endpoint()) as found:
        yield found


def settings_of(server: Endpoint, **more: Any) -> OauthSettings:
    fields: dict[str, Any] = {
        "method": "oidc",
        "endpoint": f"http://127.0.0.1:{server.port}/oauth/token?tenant=t-1",
        "client_id": "client",
        "client_secret": Secret(MARK, "sasl.oauthbearer.client.secret"),
        **more,
    }
    return OauthSettings(**fields)


def refused(settings: OauthSettings, timeout: float = 5.0) -> AuthenticationError:
    with pytest.raises(AuthenticationError) as caught:
        oidc.fetch(settings, timeout, NOW)
    text = "".join(traceback.format_exception(caught.value)) + repr(settings)
    assert MARK not in text
    assert base64.b64encode(f"client:{MARK}".encode()).decode() not in text
    assert "tenant" not in str(caught.value)
    assert str(caught.value).isprintable()
    return caught.value


def jwt(**claims: Any) -> str:
    data = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"eyJhbGciOiJSUzI1NiJ9.{data}.c2ln"


def test_the_request_is_that_of_client_credentials(endpoint: Endpoint) -> None:
    settings = settings_of(endpoint, scope="kafka read", extensions=(("logicalCluster", "lkc"),))
    token = oidc.fetch(settings, 5.0, NOW)
    assert token.value.reveal() == "abc"
    assert (token.expires_at, token.extensions) == (NOW + 100, (("logicalCluster", "lkc"),))
    (asked,) = endpoint.asked
    assert asked.path == "/oauth/token?tenant=t-1"
    assert asked.fields == {"grant_type": ["client_credentials"], "scope": ["kafka read"]}
    basic = base64.b64decode(asked.headers["Authorization"].removeprefix("Basic "))
    assert basic == f"client:{MARK}".encode()
    assert asked.headers["Accept"] == "application/json"


def test_a_secret_by_a_callable_is_asked_for_each_token(endpoint: Endpoint) -> None:
    secrets = iter(["one", "two"])
    secret = Secret(lambda: next(secrets), "sasl.oauthbearer.client.secret")
    settings = settings_of(endpoint, client_secret=secret)
    for _ in range(2):
        oidc.fetch(settings, 5.0, NOW)
    sent = [asked.headers["Authorization"].removeprefix("Basic ") for asked in endpoint.asked]
    assert [base64.b64decode(each) for each in sent] == [b"client:one", b"client:two"]


@pytest.mark.parametrize(
    ("body", "expires_at", "principal"),
    [
        ({"access_token": "abc", "expires_in": 60}, NOW + 60, ""),
        ({"access_token": "abc", "expires_in": "60"}, NOW + 60, ""),
        ({"access_token": jwt(exp=NOW + 50, sub="alice")}, NOW + 50, "alice"),
        ({"access_token": jwt(exp=NOW + 50, sub=5), "expires_in": 60}, NOW + 50, ""),
        ({"access_token": jwt(exp=NOW + 99), "expires_in": 60}, NOW + 60, ""),
        ({"id_token": jwt(exp=NOW + 50)}, NOW + 50, ""),
        ({"access_token": "a.!!.b", "expires_in": 60}, NOW + 60, ""),
    ],
)
def test_the_expiry_is_the_earlier_one_of_the_answer_and_the_token(
    endpoint: Endpoint, body: dict[str, Any], expires_at: float, principal: str
) -> None:
    endpoint.body = body
    token = oidc.fetch(settings_of(endpoint), 5.0, NOW)
    assert (token.expires_at, token.principal) == (expires_at, principal)


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ({}, "gave no access_token (it gave no JSON object)"),
        (b"[" * 100_000, "gave no access_token"),
        (b"<html>", "gave no access_token"),
        (b"\xff", "gave no access_token"),
        ({"token": MARK}, "gave no access_token (it gave token)"),
        ({"access_token": 5, "b": 1}, "gave no access_token (it gave access_token, b)"),
        ({f"for {MARK}": 1}, "gave no access_token (it gave for ***)"),
        ({"access_token": "abc"}, "without expires_in"),
        ({"access_token": "abc", "expires_in": "soon"}, "without expires_in"),
        (b'{"access_token": "abc", "expires_in": NaN}', "without expires_in"),
        (b"x" * (1 << 20) + b"xx", "more than 1048576 bytes"),
    ],
)
def test_an_answer_without_a_token_says_what_is_missing(
    endpoint: Endpoint, body: Any, what: str
) -> None:
    endpoint.body = body
    error = refused(settings_of(endpoint))
    assert f"the token endpoint http://127.0.0.1:{endpoint.port}/oauth/token gave " in str(error)
    assert what in str(error)
    assert not error.retriable


@pytest.mark.parametrize(
    ("status", "body", "said", "advice", "retriable"),
    [
        (
            401,
            {"error": "invalid_client", "error_description": f"wrong secret {MARK}"},
            "HTTP 401 Unauthorized: invalid_client: wrong secret ***",
            "check sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret",
            False,
        ),
        (
            400,
            {"error": "invalid_scope"},
            "HTTP 400 Bad Request: invalid_scope",
            "sasl.oauthbearer.client.secret and sasl.oauthbearer.scope",
            False,
        ),
        (403, b"<html>no</html>", "HTTP 403 Forbidden;", "sasl.oauthbearer.client.id", False),
        (404, b"", "HTTP 404 Not Found;", "sasl.oauthbearer.token.endpoint.url", False),
        (500, b"oops", "HTTP 500 Internal Server Error: oops", "endpoint.url", True),
        (503, b"", "HTTP 503 Service Unavailable", "endpoint.url", True),
        (429, b"", "HTTP 429 Too Many Requests", "endpoint.url", True),
        (400, {"error": 5}, 'HTTP 400 Bad Request: {"error": 5}', "client.id", False),
    ],
)
def test_a_refusal_says_status_words_and_keys(
    endpoint: Endpoint, status: int, body: Any, said: str, advice: str, retriable: bool
) -> None:
    endpoint.status, endpoint.body = status, body
    error = refused(settings_of(endpoint))
    assert said in str(error)
    assert advice in str(error)
    assert error.retriable is retriable


@pytest.mark.parametrize("sent", [MARK, base64.b64encode(f"client:{MARK}".encode()).decode()])
def test_a_status_line_with_what_was_sent_is_shown_without_it(
    endpoint: Endpoint, sent: str
) -> None:
    endpoint.status, endpoint.reason = 401, f"not {sent}"
    assert "answers HTTP 401 not ***: " in str(refused(settings_of(endpoint)))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirection_is_not_followed_with_the_secret(endpoint: Endpoint, status: int) -> None:
    endpoint.status, endpoint.headers = status, {"Location": "/elsewhere"}
    error = refused(settings_of(endpoint))
    assert f"HTTP {status}" in str(error)
    assert len(endpoint.asked) == 1


def test_a_slow_endpoint_costs_the_time_out(endpoint: Endpoint) -> None:
    endpoint.delay = 20.0
    started = time.monotonic()
    error = refused(settings_of(endpoint), 0.3)
    assert "gave no answer in 0.3 s; check sasl.oauthbearer.token.endpoint.url" in str(error)
    assert error.retriable
    assert time.monotonic() - started < PROMPT


def test_an_endpoint_that_drips_costs_the_time_out(endpoint: Endpoint) -> None:
    endpoint.body, endpoint.drip = b"x" * 100, 0.1
    started = time.monotonic()
    error = refused(settings_of(endpoint), 0.5)
    assert "gave no answer in 0.5 s" in str(error)
    assert time.monotonic() - started < PROMPT


def test_a_refusal_that_drips_costs_the_time_out_and_says_its_status(endpoint: Endpoint) -> None:
    endpoint.status, endpoint.body, endpoint.drip = 401, b"x" * 100, 0.1
    started = time.monotonic()
    error = refused(settings_of(endpoint), 0.5)
    assert "answers HTTP 401 Unauthorized" in str(error)
    assert time.monotonic() - started < PROMPT


def test_headers_that_drip_cost_the_time_out(endpoint: Endpoint) -> None:
    endpoint.header_drip = 0.1
    started = time.monotonic()
    error = refused(settings_of(endpoint), 0.5)
    assert "gave no answer in 0.5 s" in str(error)
    assert error.retriable
    assert time.monotonic() - started < PROMPT


def test_a_long_refusal_is_cut(endpoint: Endpoint) -> None:
    endpoint.status, endpoint.body = 503, b"busy " * 500_000
    error = refused(settings_of(endpoint))
    assert "HTTP 503 Service Unavailable: busy busy" in str(error)
    assert len(str(error)) < 1000


def test_an_endpoint_that_is_down_or_unknown_may_come_back(endpoint: Endpoint) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for url, what in (
        (f"http://127.0.0.1:{port}/token", "cannot be reached: Connection refused"),
        ("http://no-such-host.invalid/token", "has a host that is not found"),
    ):
        error = refused(settings_of(endpoint, endpoint=url))
        assert what in str(error)
        assert error.retriable


def test_a_port_that_speaks_no_http_is_named() -> None:
    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(b"SSH-2.0-OpenSSH\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/token"
        error = refused(OauthSettings(endpoint=url, client_id="client"))
        thread.join(10)
    assert "does not answer as an HTTP server" in str(error)
    assert not error.retriable


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def secure(authority: trustme.CA) -> Iterator[Endpoint]:
    endpoint = Endpoint()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    endpoint.server.socket = context.wrap_socket(endpoint.server.socket, server_side=True)
    with serving(endpoint) as found:
        yield found


def test_https_trusts_the_authority_of_a_file_a_text_and_no_other(
    secure: Endpoint, authority: trustme.CA, tmp_path: Path
) -> None:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    url = f"https://127.0.0.1:{secure.port}/token"
    for trusted in (
        {"https_ca_location": str(path)},
        {"https_ca_pem": authority.cert_pem.bytes().decode()},
    ):
        assert oidc.fetch(settings_of(secure, endpoint=url, **trusted), 5.0, NOW).expires_at
    error = refused(settings_of(secure, endpoint=url))
    assert "has a certificate that is not trusted" in str(error)
    assert "check https.ca.location" in str(error)
    assert not error.retriable


@contextmanager
def tunnelling(target: int, asked: list[bytes], answer: bytes) -> Iterator[str]:
    """Yields the URL of a proxy that answers its one CONNECT so, and leads to a port."""

    def serve() -> None:
        client, _ = listener.accept()
        with client, socket.create_connection(("127.0.0.1", target)) as server:
            asked.append(client.recv(65536))
            try:
                for byte in answer:
                    client.sendall(bytes([byte]))
                    time.sleep(0.001)
            except OSError:  # the client has gone
                return
            back = threading.Thread(target=copy, args=(server, client), daemon=True)
            back.start()
            copy(client, server)
            back.join(10)

    def copy(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)


def test_the_proxy_of_the_environment_leads_to_the_endpoint(
    secure: Endpoint, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy")
    url = f"https://127.0.0.1:{secure.port}/token"
    trusted = authority.cert_pem.bytes().decode()
    asked: list[bytes] = []
    answer = b"HTTP/1.1 200 Connected\r\nX-Proxy: yes\r\n\r\n"
    with tunnelling(secure.port, asked, answer) as proxy:
        monkeypatch.setenv("https_proxy", proxy)
        token = oidc.fetch(settings_of(secure, endpoint=url, https_ca_pem=trusted), 5.0, NOW)
    assert token.value.reveal() == "abc"
    assert asked[0].startswith(f"CONNECT 127.0.0.1:{secure.port}".encode())
    assert b"Authorization" not in asked[0]


def test_a_proxy_that_drips_costs_the_time_out(
    secure: Endpoint, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy")
    url = f"https://127.0.0.1:{secure.port}/token"
    started = time.monotonic()
    with tunnelling(secure.port, [], b"HTTP/1.1 200 Connected\r\nX: " + b"y" * 2000) as proxy:
        monkeypatch.setenv("https_proxy", proxy)
        error = refused(settings_of(secure, endpoint=url), 0.3)
        assert time.monotonic() - started < PROMPT
    assert "gave no answer in 0.3 s" in str(error)


def test_a_ca_file_that_cannot_be_read_is_named(endpoint: Endpoint, tmp_path: Path) -> None:
    path = tmp_path / "ca.pem"
    settings = settings_of(endpoint, endpoint="https://127.0.0.1:1/", https_ca_location=str(path))
    with pytest.raises(ConfigError, match=r"https.ca.location .*ca.pem: .*No such file"):
        oidc.fetch(settings, 5.0, NOW)
    path.write_text("no certificate")
    with pytest.raises(ConfigError, match=r"https.ca.location .*ca.pem: cannot be loaded"):
        oidc.fetch(settings, 5.0, NOW)


def test_https_to_a_plain_port_says_so(endpoint: Endpoint) -> None:
    url = f"https://127.0.0.1:{endpoint.port}/token"
    error = refused(settings_of(endpoint, endpoint=url))
    assert "failed the TLS handshake" in str(error)
    assert "(https or http)" in str(error)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "token",
        "file:///etc/passwd",
        "ftp://host/",
        "https://",
        "https://h:port/",
        "http://a b/",
    ],
)
def test_a_url_that_is_no_endpoint_is_refused_before_it_is_asked(url: str) -> None:
    with pytest.raises(ConfigError, match=r"endpoint\.url must be a URL of https:// or http://"):
        TokenSource(OauthSettings(endpoint=url, client_id="client"))


def test_a_url_with_a_password_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError, match="no user and no password") as caught:
        TokenSource(OauthSettings(endpoint=f"https://me:{MARK}@host/token"))
    assert MARK not in str(caught.value)


def test_a_source_keeps_the_token_of_the_endpoint(endpoint: Endpoint) -> None:
    now = [NOW]
    clock: Callable[[], float] = lambda: now[0]  # noqa: E731
    source = TokenSource(settings_of(endpoint), clock=clock)
    for _ in range(3):
        source.token()
    assert len(endpoint.asked) == 1
    now[0] += 81
    source.token()
    assert len(endpoint.asked) == 2
    endpoint.status = 503
    now[0] += 81
    assert source.token().value.reveal() == "abc"
    now[0] += 20
    with pytest.raises(AuthenticationError, match="HTTP 503"):
        source.token()
