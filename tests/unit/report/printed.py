"""A section as text, for tests."""

from __future__ import annotations

from pydantic import BaseModel

from tare.report.section import Format, Section


def keys_of(file: type[BaseModel]) -> set[str]:
    """Every key that a JSON file may have, on all levels."""
    schema = file.model_json_schema(mode="serialization")
    return {key for model in (schema, *schema["$defs"].values()) for key in model.get("properties", ())}


def titles(section: Section, form: Format = "md") -> tuple[str, ...]:
    """Titles of the columns that a format shows."""
    return tuple(column.title for column in section.table(form)[0])


def texts(section: Section, form: Format = "md") -> list[tuple[str, ...]]:
    """Texts of the cells, without intervals, row by row."""
    return [tuple(cell.text for cell in row) for group in section.table(form)[1] for row in group.rows]
