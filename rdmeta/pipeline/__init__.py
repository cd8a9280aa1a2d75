"""Tables from recorded history: which tasks there are, what they make, and whether it is whole.

    plan = rdmeta.pipeline.plan(["history"], "tables")
    made = rdmeta.pipeline.run(plan)
    faults = rdmeta.pipeline.check("tables")

The tables are small Parquet files that any reader sees once and whole: docs/pipeline.md.
"""

from __future__ import annotations

from rdmeta.errors import MissingExtraError

# This check comes before the modules that use pyarrow, so that they need none.
try:
    import pyarrow as _pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError.of("rdmeta.pipeline", "pipeline") from error

from rdmeta.pipeline.attempting import local_engine
from rdmeta.pipeline.errors import BadFileError, LockedError, PipelineError
from rdmeta.pipeline.manifest import Fault
from rdmeta.pipeline.planning import Plan, plan
from rdmeta.pipeline.running import Made, Progress, run
from rdmeta.pipeline.upkeep import Vacuumed, check, vacuum

__all__ = [
    "BadFileError",
    "Fault",
    "LockedError",
    "Made",
    "PipelineError",
    "Plan",
    "Progress",
    "Vacuumed",
    "check",
    "local_engine",
    "plan",
    "run",
    "vacuum",
]
