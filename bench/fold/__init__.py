"""The benches of the fold: recordings to intervals, beside a query of DuckDB."""
