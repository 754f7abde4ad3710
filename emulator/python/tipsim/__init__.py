"""Run specs, sessions, traces, reports and figures of tipsim.

Tables are Arrow's, handed over without copies: `pyarrow.table(t)`, `polars.DataFrame(t)`, `duckdb.sql("from t")`, or whatever else
knows the Arrow PyCapsule interface. `schema()` says what columns there are, and in which units. Figures are in `tipsim.plot`.
"""

from ._tipsim import Batch, Error, Table
from .report import PartWarning, Run
from .schema import Column, TableSchema, schema
from .session import Console, Hart, Session
from .simulator import profile, run
from .trace import Place, Trace, TraceWarning

__all__ = [
    "Batch",
    "Column",
    "Console",
    "Error",
    "Hart",
    "PartWarning",
    "Place",
    "Run",
    "Session",
    "Table",
    "TableSchema",
    "Trace",
    "TraceWarning",
    "profile",
    "run",
    "schema",
]
