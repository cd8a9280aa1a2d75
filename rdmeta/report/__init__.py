"""One page about what happened to a fleet: gold's measures of a span, as HTML, Markdown and JSON.

    report = rdmeta.report.make("tables", since="2026-11-20")
    Path("report.html").write_text(report.html)

docs/report.md says what each section shows.
"""

from __future__ import annotations

from rdmeta.errors import MissingExtraError

# This check comes before the modules that use these packages.
try:
    import duckdb as _duckdb  # noqa: F401
    import jinja2 as _jinja2  # noqa: F401
    import pyarrow as _pyarrow  # noqa: F401
except ImportError as error:
    raise MissingExtraError.of("rdmeta.report", "report") from error

from rdmeta.report.composing import Report, make

__all__ = ["Report", "make"]
