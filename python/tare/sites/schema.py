"""JSON Schema of sites.yaml, for editors: `python -m tare.sites.schema [--check]`."""

from __future__ import annotations

import sys

from tare.sites.file import SitesFile
from tare.study.schema import KeptSchema

SITES_SCHEMA = KeptSchema("sites.schema.json", "tare sites", "tare.sites.schema", SitesFile.model_json_schema)

if __name__ == "__main__":
    sys.exit(SITES_SCHEMA.keep())
