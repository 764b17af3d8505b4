"""Frames as files: CSV without executable formulas, and Parquet."""

from __future__ import annotations

import csv
import io
from datetime import datetime

import polars as pl

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets would execute a text that begins with one of these."""


def as_csv(frame: pl.DataFrame) -> str:
    """Return comma-separated rows with a heading; numbers with all their digits, empty cells for unknown values."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow([_cell(name) for name in frame.columns])
    rows.writerows([_cell(value) for value in row] for row in frame.iter_rows())
    return out.getvalue()


def as_parquet(frame: pl.DataFrame) -> bytes:
    """Return a Parquet file with the frame's own types."""
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str):
        return harmless(value)
    return repr(value)


def harmless(text: str) -> str:
    """Quote a text that a spreadsheet would execute."""
    return f"'{text}" if text.startswith(_FORMULA) else text
