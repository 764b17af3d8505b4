"""JSON Schema of the mapping file, for editors: `python -m tare.imports.schema [--check]`."""

from __future__ import annotations

import sys

from tare.imports.mapping import MappingFile
from tare.study.schema import KeptSchema

IMPORT_SCHEMA = KeptSchema(
    "import.schema.json", "tare import mapping", "tare.imports.schema", MappingFile.model_json_schema
)

if __name__ == "__main__":
    sys.exit(IMPORT_SCHEMA.keep())
