"""Results that somebody else has measured: mapping file → study, plan and records, analysed like tare's own."""

from __future__ import annotations

from tare.imports.collect import Import, collect
from tare.imports.load import load_mapping

__all__ = ["Import", "collect", "load_mapping"]
