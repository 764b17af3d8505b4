"""A JSON Schema that is kept in schemas/: written anew, or with `--check` held against the models it is made of."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class KeptSchema:
    """`module`: what writes it (`python -m MODULE`). `make`: what the models say, with pydantic's titles in it."""

    name: str
    title: str
    module: str
    make: Callable[[], Mapping[str, Any]]

    def tree(self) -> dict[str, Any]:
        """The schema."""
        return {"$schema": _DIALECT, "title": self.title, **untitled(self.make())}

    def text(self) -> str:
        """The schema as it is kept: keys in order of the models, two spaces, a newline at the end."""
        return json.dumps(self.tree(), indent=2, ensure_ascii=False) + "\n"

    def keep(self, argv: Sequence[str] | None = None) -> str | None:
        """Write it, or with `--check` say what is wrong with the kept one: an answer for `sys.exit`."""
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}", description=f"JSON Schema: {self.title}")
        parser.add_argument(
            "--check", action="store_true", help="fail if the kept schema is not what would be written"
        )
        parser.add_argument("--folder", type=Path, default=Path("schemas"), help="where it is kept")
        options = parser.parse_args(argv)
        path: Path = options.folder / self.name
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text(), encoding="utf-8")
            return None
        kept = path.read_text(encoding="utf-8") if path.exists() else None
        if kept == self.text():
            return None
        state = "missing" if kept is None else "out of date"
        return f"{path} is {state}: run `python -m {self.module}`"


def untitled(schema: Any) -> Any:
    """Without pydantic's titles, which only repeat the keys; descriptions on one line."""
    if isinstance(schema, list):
        return [untitled(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: untitled(value) for key, value in schema.items() if key != "title" or isinstance(value, Mapping)}
    if isinstance(kept.get("description"), str):
        kept["description"] = " ".join(kept["description"].split())
    return kept
