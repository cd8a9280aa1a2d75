"""Times a scrape by prometheus-client of a client's metrics, beside one pass of to_arrow().

The client has the topics of canned frames. The pass reads each batch of to_arrow("partitions")
with pyarrow.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import pyarrow as pa
from prometheus_client import CollectorRegistry, generate_latest

import rdmeta
from bench.cli import process
from bench.client.canned import served
from bench.figure import PER_TOPIC


def measure(topics: int, rounds: int) -> dict[str, Any]:
    """Returns milliseconds: scrape, arrow."""
    out: dict[str, Any] = {"scrape": [], "arrow": []}
    registry = CollectorRegistry()
    with served(topics, answer=process.answer) as address:
        conf = {"bootstrap.servers": "{}:{}".format(*address)}
        with rdmeta.Client(conf, topics=rdmeta.ALL) as client:
            client.refresh(timeout=60)
            registry.register(rdmeta.metrics.collector(client))
            for turn in range(rounds + 1):
                begin = perf_counter()
                text = generate_latest(registry)
                scraped = perf_counter()
                stream = pa.RecordBatchReader.from_stream(client.cache.to_arrow("partitions"))
                rows = sum(len(batch) for batch in stream)
                passed = perf_counter()
                if turn:
                    out["scrape"].append((scraped - begin) * 1e3)
                    out["arrow"].append((passed - scraped) * 1e3)
    if rows != topics * PER_TOPIC or f" {float(rows)}\n".encode() not in text:
        raise SystemExit(f"{rows} rows for {topics} topics, or the scrape has another count")
    return out
