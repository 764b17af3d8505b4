"""JSON Schemas of claim and trap files, for editors: `python -m tare.knowledge.schema [--check]`."""

from __future__ import annotations

import sys

from tare.knowledge.claim import Claim
from tare.study.schema import KeptSchema
from tare.traps.trap import Trap

CLAIM_SCHEMA = KeptSchema("claim.schema.json", "tare claim", "tare.knowledge.schema", Claim.model_json_schema)
TRAP_SCHEMA = KeptSchema("trap.schema.json", "tare trap", "tare.knowledge.schema", Trap.model_json_schema)

if __name__ == "__main__":
    sys.exit(CLAIM_SCHEMA.keep() or TRAP_SCHEMA.keep())
