"""The option --metrics of commands that keep running: their clients' metrics over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from rdmeta.cli.messages import BadInputError
from rdmeta.errors import MissingExtraError

if TYPE_CHECKING:
    from rdmeta.client.blocking import Client

__all__ = ["Serve", "metrics_option", "serving"]

# Adds clients to those whose metrics are served.
Serve: TypeAlias = "Callable[..., None]"


def metrics_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --metrics; the function gets the port, or None, as `metrics`."""
    return click.option(
        "--metrics",
        type=click.IntRange(1, 65535),
        metavar="PORT",
        help="Serve metrics for Prometheus on this port, of all addresses; needs rdmeta[metrics].",
    )(function)


@contextmanager
def serving(port: int | None) -> Iterator[Serve]:
    """Serves metrics during the block, if there is a port; yields what takes the clients.

    Raises BadInputError if the port cannot be taken, MissingExtraError.
    """
    if port is None:
        yield _nothing
        return
    try:
        from prometheus_client import CollectorRegistry, start_http_server
    except ImportError as error:
        raise MissingExtraError.of("--metrics", "metrics") from error
    from rdmeta.metrics import collector

    registry = CollectorRegistry()
    try:
        server, _ = start_http_server(port, registry=registry)
    except OSError as error:
        raise BadInputError(f"--metrics {port}: {error.strerror}") from error

    def serve(*clients: Client) -> None:
        registry.register(collector(*clients))

    try:
        yield serve
    finally:
        server.shutdown()
        server.server_close()


def _nothing(*clients: Client) -> None:
    """Serves no metrics."""
