"""Scenarios on Apache Kafka that wants client certificates: a client's own one is replaced."""

from __future__ import annotations

import os
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from both_shells import Shell, both
from certificates import Identity
from kafka_security import MUTUAL, KafkaSecurity
from real_kafka import RealKafka
from scenario_run import LED, Seen

from rdmeta import MetadataCache, TlsError, fetch

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

# So long the first certificate is valid.
LIFE_S = 6.0


def install(identity: Identity, directory: Path) -> tuple[str, str]:
    """Replaces the client's certificate and key, each in one step; returns their paths."""
    for new in identity.write(directory, "client.new"):
        os.replace(new, new.replace(".new", ""))
    return str(directory / "client.pem"), str(directory / "client.key")


def attempts(shell: Shell) -> int:
    """Returns how often a client has begun to connect, over all nodes."""
    return sum(int(node["attempts"]) for node in shell.call("stats")["nodes"].values())


@pytest.mark.parametrize("kafka", ["4.3.0", "3.9.1"], indirect=True)
def test_a_client_certificate_is_replaced_on_disk_before_it_expires(
    kafka: RealKafka,
    security: KafkaSecurity,
    brokers_name: str,
    rounds: range,
    seen: Seen,
    tmp_path: Path,
) -> None:
    proxies = kafka.proxies_of[MUTUAL].values()
    for _ in rounds:
        ends = datetime.now(timezone.utc) + timedelta(seconds=LIFE_S)
        first = security.clients.issue("client", common_name="client", not_after=ends)
        certificate, key = install(first, tmp_path)
        tls = {"security.protocol": "ssl", "ssl.ca.location": security.ca}
        conf = {**tls, "ssl.certificate.location": certificate, "ssl.key.location": key}
        servers = {"bootstrap.servers": ",".join(proxy.address for proxy in proxies)}
        with both({**servers, **conf}, "own", [LED]) as shells:
            old = {**tls, "ssl.certificate.pem": first.certificate, "ssl.key.pem": first.key}
            install(security.clients.issue("client", common_name="client"), tmp_path)
            time.sleep(max(0.0, ends.timestamp() + 1 - time.time()))
            with pytest.raises(TlsError, match="refuses the client certificate"):
                fetch(MetadataCache(), kafka.address(1, MUTUAL), (), conf=old, timeout=20)
            for shell in shells:
                shell.call("refresh", [LED], force=True, timeout=20)
                assert shell.errors == []  # a broken connection would be one
            before = [attempts(shell) for shell in shells]
            broken = time.monotonic()
            for proxy in proxies:
                proxy.drop()
            late = time.monotonic() - broken
            calls = [shell.timed("refresh", [LED], force=True, timeout=20) for shell in shells]
            for shell, call, count in zip(shells, calls, before, strict=True):
                seen.add("certificate-replaced", brokers_name, shell.kind, late + call.result(60))
                assert attempts(shell) > count
                assert "certificate" not in str(shell.errors)
    seen.check("certificate-replaced")
