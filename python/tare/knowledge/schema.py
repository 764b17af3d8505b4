"""JSON Schema of the claim file, for editors: `python -m tare.knowledge.schema [--check]`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tare.knowledge.claim import Claim

NAME = "claim.schema.json"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def claim_schema() -> dict[str, Any]:
    """The schema of a claim file."""
    return {"$schema": _DIALECT, "title": "tare claim", **_plain(Claim.model_json_schema())}


def text() -> str:
    """The schema as it is kept: two spaces, a newline at the end."""
    return json.dumps(claim_schema(), indent=2, ensure_ascii=False) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the schema, or with `--check` say whether the kept one is it. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tare.knowledge.schema", description="JSON Schema of claims")
    parser.add_argument("--check", action="store_true", help="fail if the kept schema is not what would be written")
    parser.add_argument("--folder", type=Path, default=Path("schemas"), help="where it is kept")
    options = parser.parse_args(argv)
    path: Path = options.folder / NAME
    if not options.check:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(), encoding="utf-8")
        return 0
    kept = path.read_text(encoding="utf-8") if path.exists() else None
    if kept == text():
        return 0
    state = "missing" if kept is None else "out of date"
    sys.stderr.write(f"{path} is {state}: run `python -m tare.knowledge.schema`\n")
    return 1


def _plain(schema: Any) -> Any:
    """Without pydantic's titles, which only repeat the keys; descriptions on one line."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _plain(value) for key, value in schema.items() if key != "title" or isinstance(value, dict)}
    if isinstance(kept.get("description"), str):
        kept["description"] = " ".join(kept["description"].split())
    return kept


if __name__ == "__main__":
    sys.exit(main())
