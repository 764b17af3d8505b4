"""The pattern of files' paths: `results-{threads}_*_{repetition}.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tare.errors import StudyError

_TOKEN = re.compile(r"\{([^{}]*)\}|(\*\*/|\*)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class PathPattern:
    """A pattern with the names of its parts in order; a part and `*` never hold a slash, `**/` is any folders."""

    text: str
    parts: tuple[str, ...]
    regex: re.Pattern[str]

    @classmethod
    def of(cls, text: str) -> PathPattern:
        """Read a pattern. Raises `ValueError` that says what is wrong with it."""
        if text.startswith("/") or ".." in text.split("/"):
            raise ValueError("a path below the directory that is imported, without ..")
        parts: list[str] = []
        made, at = "", 0
        for match in _TOKEN.finditer(text):
            made += re.escape(text[at : match.start()])
            at = match.end()
            name, star = match.groups()
            if star:
                made += "(?:.*/)?" if star == "**/" else "[^/]*"
                continue
            if not _NAME.fullmatch(name):
                raise ValueError(f"{{{name}}} is no name: letters, digits, dots and hyphens")
            if name in parts:
                raise ValueError(f"the part {{{name}}} stands in it twice")
            made += f"(?P<p{len(parts)}>[^/]+?)"
            parts.append(name)
        rest = text[at:]
        if "{" in rest or "}" in rest or "{" in re.sub(_TOKEN, "", text):
            raise ValueError("a brace without its partner")
        return cls(text, tuple(parts), re.compile(made + re.escape(rest)))

    def read(self, path: str) -> Mapping[str, str] | None:
        """The parts of a path below the directory, `None` where it does not fit."""
        match = self.regex.fullmatch(path)
        return None if match is None else {name: match.group(f"p{n}") for n, name in enumerate(self.parts)}

    def files(self, directory: Path) -> Iterator[tuple[Path, Mapping[str, str]]]:
        """Every file below the directory that fits, in the order of their paths."""
        if not directory.is_dir():
            raise StudyError(f"{directory} is no directory", hint="name the directory with the results to import")
        for path in sorted(directory.rglob("*")):
            found = self.read(path.relative_to(directory).as_posix())
            if found is not None and path.is_file():
                if not str(path).isprintable():
                    hint = "give it a name of printable letters in UTF-8"
                    raise StudyError(f"{str(path)!r} cannot be kept by that name", hint=hint)
                yield path, found
