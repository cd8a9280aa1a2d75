"""The peers: what each of them needs, and how its worker is started.

A peer is prepared once. The program finds what it needs, installs it where that is possible
(PyPI, Maven, Debian's packages as root), and compiles it. A peer that cannot be prepared raises
Missing with the reason, and the run goes on without it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench import build

HERE = Path(__file__).resolve().parent
INSTALL_SECONDS = 600


class PeerMissing(Exception):
    """A peer cannot be measured here; the message is the reason."""


@dataclass(frozen=True)
class Limits:
    """Limits of one worker: rounds of each thing, seconds for them, seconds to warm up a JIT."""

    rounds: int
    seconds: int
    warm: float


class Peer:
    """A subject with a worker of its own: a process that prints JSON."""

    name: str
    server: bool = False  # a server of canned frames feeds its worker
    modes: tuple[str, ...] = ("speed", "memory")

    def prepare(self, install: bool) -> str:
        """Makes the peer ready to run, and returns its version. Raises Missing."""
        raise NotImplementedError

    def command(self, mode: str, work: Path, limits: Limits, bootstrap: str) -> list[str]:
        """Returns the command of the worker."""
        raise NotImplementedError


def output(command: Sequence[str], what: str, cwd: Path = build.ROOT) -> str:
    """Returns what a command prints. Raises Missing with its last words if it fails."""
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=INSTALL_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerMissing(f"{what}: {error}") from error
    if done.returncode:
        raise PeerMissing(f"{what}: {complaint(done.stderr + done.stdout) or done.returncode}")
    return done.stdout.strip()


def complaint(text: str) -> str:
    """Returns the line that says what went wrong: the first with "error" in it, or the first.

    Colours and addresses of registries are removed.
    """
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    plain = re.sub(r"https?://[^\s'\")]+", "<address>", plain)
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    found = next((line for line in lines if "error" in line.lower()), lines[0] if lines else "")
    return found[:300]


def debian(install: bool, *packages: str) -> None:
    """Installs Debian packages, as root and if there is apt-get."""
    names = " ".join(packages)
    if not install:
        raise PeerMissing(f"not installed (Debian: {names}), and nothing is to be installed")
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid():
        why = "no apt-get here" if apt is None else "apt-get needs root"
        raise PeerMissing(f"not installed (Debian: {names}), {why}")
    environment = ["env", "DEBIAN_FRONTEND=noninteractive", apt, "-qq"]
    output([*environment, "update"], "apt-get update")
    output(
        [*environment, "install", "-y", "--no-install-recommends", *packages],
        f"apt-get install {names}",
    )


class RdmetaPeer(Peer):
    """This cache, in C, and the bare table beside it."""

    name = "rdmeta"

    def prepare(self, install: bool) -> str:
        build.c_benches()
        return version("rdmeta")

    def command(self, mode: str, work: Path, limits: Limits, bootstrap: str) -> list[str]:
        program = str(build.OUT / "peer")
        return [program, mode, str(work), str(limits.rounds), str(limits.seconds)]


class Librdkafka(Peer):
    """Debian's static library, compiled into bench/peers/librdkafka.c."""

    name = "librdkafka"
    server = True
    wrapped = ("rd_kafka_parse_Metadata", "rd_kafka_metadata_cache_update", "rwlock_rdlock")

    def prepare(self, install: bool) -> str:
        build.c_benches()
        libraries = self.libraries()
        if libraries is None:
            debian(install, "librdkafka-dev")
            libraries = self.libraries()
        if libraries is None:
            raise PeerMissing(
                "pkg-config is not installed, or names no directory with librdkafka.a"
            )
        archive, others = libraries
        objects = [str(build.OUT / name) for name in ("common.o", "gen.o", "workload.o")]
        ours = sorted(str(path) for path in (build.OUT / "csrc").rglob("*.o"))
        output(
            [os.environ.get("CC", "gcc"), "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror"]
            + [f"-I{build.ROOT / 'bench' / 'c'}", f"-I{build.ROOT / 'csrc' / 'include'}"]
            + ["-o", str(build.OUT / "librdkafka"), str(HERE / "librdkafka.c"), *objects, *ours]
            + [archive, "-Wl," + ",".join(f"--wrap={name}" for name in self.wrapped)]
            + [*others, "-lm", "-lpthread", "-ldl"],
            "compiling against the static library",
        )
        return output(["pkg-config", "--modversion", "rdkafka"], "pkg-config")

    @staticmethod
    def libraries() -> tuple[str, list[str]] | None:
        """Returns the archive, and the shared libraries that the shared one is linked with.

        They are installed with it; their headers and plain names are not.
        """
        try:
            where = output(["pkg-config", "--variable=libdir", "rdkafka"], "pkg-config")
            linked = output(["ldd", f"{where}/librdkafka.so"], "ldd")
        except PeerMissing:
            return None
        archive = Path(where) / "librdkafka.a"
        if not archive.exists():
            return None
        paths = [line.split("=>")[1].split()[0] for line in linked.splitlines() if "=> /" in line]
        return str(archive), [path for path in paths if "/libc.so" not in path]

    def command(self, mode: str, work: Path, limits: Limits, bootstrap: str) -> list[str]:
        program = str(build.OUT / "librdkafka")
        return [program, mode, str(work), str(limits.rounds), str(limits.seconds), bootstrap]


class Java(Peer):
    """Kafka's own client, from Maven's kafka-clients."""

    name = "kafka-clients"
    out = build.OUT / "java"

    def prepare(self, install: bool) -> str:
        if shutil.which("javac") is None or shutil.which("mvn") is None:
            debian(install, "default-jdk-headless", "maven")
        sources = (HERE / "java" / "Peer.java", HERE / "java" / "pom.xml")
        built = self.out / "classes" / "Peer.class"
        newest = max(path.stat().st_mtime for path in sources)
        if not built.exists() or built.stat().st_mtime < newest or not self.clients():
            # A jar of another version would be one more on the class path.
            shutil.rmtree(self.out / "jars", ignore_errors=True)
            offline = [] if install else ["-o"]
            output(
                [
                    "mvn",
                    "-q",
                    "-B",
                    *offline,
                    "-f",
                    str(sources[1]),
                    "compile",
                    f"-Dout={self.out}",
                ],
                "mvn compile" if install else "mvn compile, offline",
            )
            built.touch()
        if not self.clients():
            raise PeerMissing("Maven left no kafka-clients.jar")
        return self.clients()[0].stem.removeprefix("kafka-clients-")

    def clients(self) -> list[Path]:
        """Returns the client's jar, if Maven has put it there: it compiles before it copies."""
        return list((self.out / "jars").glob("kafka-clients-*.jar"))

    def command(self, mode: str, work: Path, limits: Limits, bootstrap: str) -> list[str]:
        path = f"{self.out / 'classes'}{os.pathsep}{self.out / 'jars' / '*'}"
        machine = ["java", "-XX:+UseSerialGC", "-Xms2g", "-Xmx4g", "-cp", path, "Peer"]
        numbers = (limits.rounds, limits.seconds, limits.warm)
        return [*machine, mode, str(work), *map(str, numbers)]


class Go(Peer):
    """A Go map, without anything else."""

    name = "go"
    modes = ("speed",)

    def prepare(self, install: bool) -> str:
        if shutil.which("go") is None:
            debian(install, "golang-go")
        source = HERE / "go"
        output(["go", "build", "-o", str(build.OUT / "gomap"), "."], "go build", cwd=source)
        return output(["go", "env", "GOVERSION"], "go env", cwd=source).removeprefix("go")

    def command(self, mode: str, work: Path, limits: Limits, bootstrap: str) -> list[str]:
        return [str(build.OUT / "gomap"), str(work), str(limits.rounds), str(limits.seconds)]


class Python(Peer):
    """A package of PyPI, or a type of Python itself; bench/peers/python.py measures it."""

    def __init__(self, name: str, package: str | None, server: bool = False) -> None:
        self.name = name
        self.package = package
        self.server = server
        if package is None:
            self.modes = ("speed",)

    def prepare(self, install: bool) -> str:
        if self.package is None:
            return sys.version.split()[0]
        try:
            return version(self.package)
        except PackageNotFoundError as error:
            if not install:
                raise PeerMissing("not installed, and nothing is to be installed") from error
        pins = ["-c", str(build.ROOT / "constraints.txt")]
        output([sys.executable, "-m", "pip", "install", "-q", *pins, self.package], "pip install")
        return output(
            [
                sys.executable,
                "-c",
                f"import importlib.metadata as m; print(m.version({self.package!r}))",
            ],
            "after pip install",
        )

    def command(self, mode: str, work: Path, limits: Limits, bootstrap: str) -> list[str]:
        subject = self.name.removesuffix(" (Python)")
        numbers = (str(limits.rounds), str(limits.seconds))
        command = [sys.executable, "-m", "bench.peers.python", mode, str(work), *numbers, subject]
        return [*command, bootstrap] if self.server else command


PEERS: tuple[Peer, ...] = (
    RdmetaPeer(),
    Librdkafka(),
    Java(),
    Go(),
    Python("rdmeta (Python)", "rdmeta"),
    Python("dict", None),
    Python("kafka-python", "kafka-python"),
    Python("aiokafka", "aiokafka"),
    Python("confluent-kafka", "confluent-kafka", server=True),
)
