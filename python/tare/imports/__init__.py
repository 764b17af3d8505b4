"""Import of results measured elsewhere: a mapping file gives study, plan and records, analysed like tare's own."""

from __future__ import annotations

from tare.imports.collect import Import, collect
from tare.imports.load import ImportMapping, load_mapping

__all__ = ["Import", "ImportMapping", "collect", "load_mapping"]
