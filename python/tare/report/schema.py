"""JSON Schema of the output of `tare report --format json`: `python -m tare.report.schema [--check]`."""

from __future__ import annotations

import sys
from functools import partial

from tare.report.findings_file import FindingsFile
from tare.study.schema import KeptSchema

FINDINGS_SCHEMA = KeptSchema(
    "findings.schema.json",
    "tare findings",
    "tare.report.schema",
    partial(FindingsFile.model_json_schema, mode="serialization"),
)

if __name__ == "__main__":
    sys.exit(FINDINGS_SCHEMA.keep())
