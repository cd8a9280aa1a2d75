"""The option --metrics of commands that keep running: their clients' metrics over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click

from rdmeta.cli.messages import BadInputError
from rdmeta.errors import MissingExtraError

if TYPE_CHECKING:
    from rdmeta.client.blocking import Client
    from rdmeta.metrics.samples import MinIsrs

__all__ = ["Listen", "Serve", "metrics_option", "serving"]

# Adds clients to those whose metrics are served.
Serve: TypeAlias = "Callable[..., None]"


_PAGES = ("/", "/metrics")


class Listen(NamedTuple):
    """Where to serve: `given` is the user's text of it."""

    given: str
    host: str
    port: int


def metrics_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --metrics; the function gets a Listen, or None, as `metrics`."""
    return click.option(
        "--metrics",
        metavar="[HOST:]PORT",
        callback=_listen,
        help="Serve metrics for Prometheus on this port, of HOST or of all addresses; needs"
        " rdmeta[metrics].",
    )(function)


def _listen(context: click.Context, option: click.Parameter, value: str | None) -> Listen | None:
    if value is None:
        return None
    host, colon, port = value.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        port = ""  # an IPv6 address without brackets: where it ends is not clear
    is_port = port.isascii() and port.isdigit() and len(port) < 6 and 1 <= int(port) <= 65535
    if not is_port or (colon and not host):
        text = "--metrics needs PORT or HOST:PORT, such as 9308, 127.0.0.1:9308 or [::1]:9308"
        raise click.UsageError(text, context)
    return Listen(value, host or "0.0.0.0", int(port))


@contextmanager
def serving(listen: Listen | None) -> Iterator[Serve]:
    """Serves metrics during the block, if there is a place; yields what takes the clients.

    Raises BadInputError if the port cannot be taken, MissingExtraError.
    """
    if listen is None:
        yield _nothing
        return
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as error:
        raise MissingExtraError.of("--metrics", "metrics") from error
    from rdmeta.metrics import collector

    registry = CollectorRegistry()
    try:
        server, _ = start_http_server(listen.port, listen.host, registry)
    except (OSError, UnicodeError) as error:  # a name with an empty label has no form in IDNA
        reason = error.strerror if isinstance(error, OSError) else "no name of a host"
        raise BadInputError(f"--metrics {listen.given}: {reason}") from error
    metrics: Any = server.get_app()

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        """Answers 404 for all but the metrics: prometheus-client has them at each path."""
        if environ["PATH_INFO"] in _PAGES:
            return metrics(environ, start_response)
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"The metrics are at /metrics.\n"]

    server.set_app(application)

    def serve(*clients: Client, min_isr: MinIsrs | None = None) -> None:
        registry.register(collector(*clients, min_isr=min_isr))

    try:
        yield serve
    finally:
        server.shutdown()
        server.server_close()


def _nothing(*clients: Client, min_isr: MinIsrs | None = None) -> None:
    """Serves no metrics."""
