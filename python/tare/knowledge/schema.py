"""JSON Schema of the claim file, for editors: `python -m tare.knowledge.schema [--check]`."""

from __future__ import annotations

import sys

from tare.knowledge.claim import Claim
from tare.study.schema import KeptSchema

CLAIM_SCHEMA = KeptSchema("claim.schema.json", "tare claim", "tare.knowledge.schema", Claim.model_json_schema)

if __name__ == "__main__":
    sys.exit(CLAIM_SCHEMA.keep())
