"""JSON Schema of a machine plan, for editors: `python -m tare.sites.cloud.schema [--check]`."""

from __future__ import annotations

import sys

from tare.sites.cloud.plan import MachinePlan
from tare.study.schema import KeptSchema

PLAN_SCHEMA = KeptSchema(
    "machine-plan.schema.json", "tare machine plan", "tare.sites.cloud.schema", MachinePlan.model_json_schema
)

if __name__ == "__main__":
    sys.exit(PLAN_SCHEMA.keep())
