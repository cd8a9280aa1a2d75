"""A local OIDC server that gives tokens to a client with the right secret, or fails as a test says.

with TokenServer("client", "secret") as server:
    server.url
    server.delay = 5.0          # from now on
    server.answer = 200, b"[]"  # instead of a token
    server.given                # the tokens that it gave
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs


class TokenServer:
    """A context manager that serves client credentials (RFC 6749, 4.4) on a free port."""

    def __init__(
        self,
        client: str,
        secret: str,
        *,
        tokens: set[str] | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """Adds each token that it gives to `tokens`; `context` makes it an https server."""
        self.client, self.secret = client, secret
        self.tokens = tokens if tokens is not None else set()
        self.given: list[str] = []
        # Times (time.monotonic()) of the requests.
        self.asked: list[float] = []
        # The client id of each request.
        self.askers: list[str] = []
        # Seconds before an answer.
        self.delay = 0.0
        # Seconds of a token's life.
        self.life = 600
        # Status and body instead of a token.
        self.answer: tuple[int, bytes] | None = None
        # Whether a refusal shows what the client has sent.
        self.echo = False
        self._context = context
        self._stopping = threading.Event()
        self._server: ThreadingHTTPServer | None = None
        self._port = 0

    @property
    def url(self) -> str:
        scheme = "http" if self._context is None else "https"
        return f"{scheme}://127.0.0.1:{self._port}/token"

    def start(self) -> None:
        """Listens on the port that it had before, or on a free one."""
        if self._server is not None:
            return
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler())
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        if self._context is not None:
            self._server.socket = self._context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        serve = self._server.serve_forever
        threading.Thread(target=serve, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        """Refuses connections from now on."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def __enter__(self) -> TokenServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self.stop()

    def reply(self, authorization: str, form: str) -> tuple[int, bytes]:
        """Returns the status and the body for a request."""
        self.asked.append(time.monotonic())
        user = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        self.askers.append(user.partition(":")[0])
        self._stopping.wait(self.delay)
        if self.answer is not None:
            return self.answer
        pair = base64.b64encode(f"{self.client}:{self.secret}".encode()).decode()
        if authorization != f"Basic {pair}":
            said = "wrong secret"
            if self.echo:
                sent = authorization.removeprefix("Basic ")
                said += f" {sent} {base64.b64decode(sent).decode()}"
            return 401, json.dumps({"error": "invalid_client", "error_description": said}).encode()
        if parse_qs(form).get("grant_type") != ["client_credentials"]:
            return 400, b'{"error": "unsupported_grant_type"}'
        token = f"token-{len(self.given)}-MARKED"
        self.given.append(token)
        self.tokens.add(token)
        found = {"access_token": token, "token_type": "Bearer", "expires_in": self.life}
        return 200, json.dumps(found).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers.get("Content-Length", 0))
                form = self.rfile.read(size).decode()
                status, body = server.reply(self.headers.get("Authorization", ""), form)
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:  # the client has given up
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
