"""Uses an installed rdmeta that has none of its extras; exits with 0 if everything works.

test_packaging.py and cibuildwheel run it with the interpreter of an environment that contains only
the wheel: `python -I tests/repo/installed_use.py`.
"""

from __future__ import annotations

import importlib.util
import struct
import subprocess
import sys
from pathlib import Path

import rdmeta

EXTRAS = ["aiokafka", "cffi", "click", "confluent_kafka", "kafka", "pyarrow", "pyspark", "rich"]

# Modules and packages that need extras, and the extras that their errors name. All others import.
NEEDS = {
    "rdmeta.demo": "cli,kafka,cffi,spark,report",
    "rdmeta.ffi": "cffi",
    "rdmeta.generate.recordings": "arrow",
    "rdmeta.generate.scenarios": "arrow",
    "rdmeta.history": "arrow",
    "rdmeta.kraft.log_tables": "arrow",
    "rdmeta.kraft.recordings": "arrow",
    "rdmeta.metrics.otel": "metrics",
    "rdmeta.metrics.prometheus": "metrics",
    "rdmeta.pipeline": "pipeline",
    "rdmeta.report": "report",
    "rdmeta.spark.executors": "spark",
    "rdmeta.spark.functions": "spark",
    "rdmeta.spark.gold_frames": "spark",
    "rdmeta.spark.large_months": "spark",
    "rdmeta.spark.probing": "pipeline",
    "rdmeta.spark.remote": "pipeline",
    "rdmeta.spark.silver_frames": "spark",
    "rdmeta.spark.source": "spark",
}
COMMANDS = {
    ("-m", "rdmeta.demo"): "cli,kafka,cffi,spark,report",
    (str(Path(sys.executable).with_name("rdmeta")), "list"): "cli",
}
# The modules of the command, which import its extra. Only the command itself names it.
PRIVATE = "rdmeta.cli."


def string(text: str) -> bytes:
    """Encodes a Kafka string: int16 length, then UTF-8."""
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def ids(*values: int) -> bytes:
    """Encodes a Kafka array of int32."""
    return struct.pack(f">i{len(values)}i", len(values), *values)


def metadata_response_v1() -> bytes:
    """Returns a response with one broker, 7, the leader of both partitions of `orders`."""
    broker = struct.pack(">i", 7) + string("localhost") + struct.pack(">ih", 9092, -1)
    partitions = b"".join(
        struct.pack(">hii", 0, partition, 7) + ids(7) + ids(7) for partition in (0, 1)
    )
    topic = struct.pack(">h", 0) + string("orders") + struct.pack(">bi", 0, 2) + partitions
    return struct.pack(">i", 1) + broker + struct.pack(">ii", 7, 1) + topic


def advice_of(module: str) -> str | None:
    """Imports a module; returns the text of its MissingExtraError, or None if there is none."""
    try:
        importlib.import_module(module)
    except rdmeta.errors.MissingExtraError as error:
        return str(error)
    return None


def check_modules(installed: Path) -> None:
    """Checks that each module imports, or names the extra that it needs."""
    for path in sorted(installed.rglob("*.py")):
        parts = path.relative_to(installed.parent).with_suffix("").parts
        module = ".".join(parts).removesuffix(".__init__")
        if parts[-1] == "__main__" or module.startswith(PRIVATE):
            continue
        needed = [NEEDS[name] for name in NEEDS if f"{module}.".startswith(f"{name}.")]
        advice = advice_of(module)
        if needed:
            assert f"pip install 'rdmeta[{needed[0]}]'" in (advice or ""), f"{module}: {advice}"
        else:
            assert advice is None, f"{module}: {advice}"


def check_commands() -> None:
    """Checks that each command names in one line the extras that it lacks, and exits with 2."""
    for words, extras in COMMANDS.items():
        command = [sys.executable, "-I", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2, done
        assert done.stdout == "", done
        assert len(done.stderr.splitlines()) == 1, done
        assert f"pip install 'rdmeta[{extras}]'" in done.stderr, done


def main() -> None:
    installed = Path(rdmeta.__file__).resolve().parent
    source = Path(__file__).resolve().parents[2]
    assert not installed.is_relative_to(source), f"{installed} is the source tree"
    loaded = [name for name in EXTRAS if name in sys.modules]
    assert not loaded, f"import rdmeta imports {loaded}"
    present = [name for name in EXTRAS if importlib.util.find_spec(name)]
    assert not present, f"{present} are installed: run this where no extra is installed"

    cache = rdmeta.MetadataCache()
    applied = cache.apply(metadata_response_v1(), 1)
    assert cache.leader("orders", 1) == 7
    assert cache.version == applied.version > 0
    assert [change.kind for change in cache.changes() if change.topic] == ["topic_added"]
    assert "arrow_array_stream" in repr(cache.to_arrow("partitions").__arrow_c_stream__())
    header = Path(rdmeta.get_include(), "rdmeta.h")
    assert header.is_file(), f"{header} is missing"
    advice = ""
    try:
        rdmeta.EmbeddedCluster(brokers=1)
    except rdmeta.errors.MissingExtraError as error:
        advice = str(error)
    assert "pip install 'rdmeta[kafka,cffi]'" in advice, "EmbeddedCluster does not name its extra"
    check_modules(installed)
    check_commands()
    print(f"rdmeta {rdmeta.__version__} works without extras")


if __name__ == "__main__":
    main()
