"""Compiles and starts the producer in Java, with the jars of `make kafka-jars`."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from real_kafka import JARS

from bench import build
from bench.client.kafka import VERSION
from bench.figure import Missing

SOURCE = Path(__file__).resolve().parent / "java" / "KafkaWatch.java"
OUT = build.OUT / "client"
COMPILE_SECONDS = 120


def command(mode: str, bootstrap: str, topic: str, *more: str) -> list[str]:
    """Returns the command of a producer; compiles it first if need be. Raises Missing."""
    if shutil.which("javac") is None:
        raise Missing("no javac: a Java producer needs a JDK")
    path = os.pathsep.join((str(OUT), f"{JARS / VERSION}/*"))
    built = OUT / "KafkaWatch.class"
    if not built.exists() or built.stat().st_mtime < SOURCE.stat().st_mtime:
        done = subprocess.run(
            ["javac", "-d", str(OUT), "-cp", path, str(SOURCE)],
            capture_output=True,
            text=True,
            timeout=COMPILE_SECONDS,
        )
        if done.returncode:
            raise Missing(f"javac: {done.stderr.strip()[:300]}")
    machine = ["java", "-Xmx200m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    return [*machine, quiet, "-cp", path, "KafkaWatch", mode, bootstrap, topic, *more]
