"""The pattern by which a mapping reads parts from the names of files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import comb, prod
from pathlib import Path

from tare.errors import StudyError
from tare.imports.contents import Source, sources

_TOKEN = re.compile(r"\{([^{}]*)\}|(\*\*/|\*)")
_ANY, _PART, _LONGEST_PART = "[^/]*", "[^/]+?", "[^/]+"
_MOST_WAYS = 1_000_000
"""They take some 0.2 s."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class PathPattern:
    """A pattern with the names of its parts in order. Parts and `*` never contain a slash; `**/` is any folders."""

    text: str
    parts: tuple[str, ...]
    regex: re.Pattern[str]
    longest: re.Pattern[str] | None
    """The same pattern with the longest possible first parts; `None` if a `*` makes them ambiguous."""
    between: tuple[str, ...] = ()
    """Texts between two parts or stars; empty where nothing separates them."""
    decided: PathPattern | None = None
    """The same pattern where parts with levels have no other texts: it decides between readings of a name."""

    @classmethod
    def of(cls, text: str, levels: Mapping[str, Collection[str]] | None = None) -> PathPattern:
        """Parse a pattern. `levels`: part → its texts. Raises `ValueError` with what is wrong with the pattern."""
        if text.startswith("/") or ".." in text.split("/"):
            raise ValueError("a path below the directory that is imported, without ..")
        parts: list[str] = []
        literals: list[str] = []
        made, at = "", 0
        for match in _TOKEN.finditer(text):
            made += re.escape(text[at : match.start()])
            literals.append(text[at : match.start()] or ("/" if text[:at].endswith("**/") else ""))
            at = match.end()
            name, star = match.groups()
            if star:
                made += "(?:.*/)?" if star == "**/" else _ANY
                continue
            if not _NAME.fullmatch(name):
                raise ValueError(f"{{{name}}} is no name: letters, digits, dots and hyphens")
            if name in parts:
                raise ValueError(f"the part {{{name}}} occurs twice")
            texts = sorted((levels or {}).get(name, ()), key=len, reverse=True)
            made += f"(?P<p{len(parts)}>{'|'.join(map(re.escape, texts)) or _PART})"
            parts.append(name)
        rest = text[at:]
        if "{" in rest or "}" in rest or "{" in re.sub(_TOKEN, "", text):
            raise ValueError("unmatched brace")
        regex = made + re.escape(rest)
        longest = None if _ANY in made else re.compile(regex.replace(_PART, _LONGEST_PART))
        return cls(text, tuple(parts), re.compile(regex), longest, tuple(literals[1:]))

    def deciding_by(self, levels: Mapping[str, Collection[str]]) -> PathPattern:
        """The same pattern with the texts of the mapping's levels, which decide between readings of a name."""
        return replace(self, decided=PathPattern.of(self.text, levels)) if levels else self

    def read(self, path: str) -> Mapping[str, str] | None:
        """Parts of a path below the directory; `None` if the path does not match."""
        return self._read(self.regex, path)

    def _read(self, regex: re.Pattern[str], path: str) -> Mapping[str, str] | None:
        if self._ways(path) > _MOST_WAYS:
            raise StudyError(
                f"{path[:200]} could be read by {self.text[:200]!r} in more than {_MOST_WAYS} ways",
                hint="rename it, or write a pattern with fewer parts and stars",
            )
        match = regex.fullmatch(path)
        return None if match is None else {name: match.group(f"p{n}") for n, name in enumerate(self.parts)}

    def _ways(self, path: str) -> int:
        """Bound of the ways in which the parts may be laid over a path, all of which a match may try."""
        return prod(
            comb(max(times, path.count(text) if text else len(path)), times)
            for text, times in Counter(self.between).items()
        )

    def files(self, directory: Path) -> Iterator[tuple[Source, Mapping[str, str]]]:
        """Yield matching files below the directory, in the order of paths; copies in a store are skipped."""
        for source in sources(directory):
            matched = next(((name, parts) for name in source.names if (parts := self._of(name)) is not None), None)
            if matched is None:
                continue
            if not source.name.isprintable() or not str(source.path).isprintable():
                hint = "rename it with printable characters in UTF-8"
                raise StudyError(f"{str(source.path)!r} cannot be stored under that name", hint=hint)
            if source.path.is_symlink() and not source.path.resolve().is_relative_to(directory.resolve()):
                hint = "its content would be copied into the store: put the file itself there, if it is a result"
                raise StudyError(f"{source.path} is a link that leads out of {directory}", hint=hint)
            yield source, matched[1]

    def _of(self, path: str) -> Mapping[str, str] | None:
        """Parts of a path, by the levels of the mapping where they decide. Raises `StudyError` for two readings."""
        if self.decided is not None and (parts := self.decided.read(path)) is not None:
            self.decided._must_be_one_reading(path, parts)
            return parts
        parts = self.read(path)
        if parts is not None and self.decided is None:  # else no reading is of levels alone, so it is no run
            self._must_be_one_reading(path, parts)
        return parts

    def _must_be_one_reading(self, path: str, fields: Mapping[str, str]) -> None:
        other = fields if self.longest is None else self._read(self.longest, path)
        if other and other != fields:
            part, text = next((name, text) for name, text in fields.items() if other[name] != text)
            raise StudyError(
                f"{path} can be read in two ways: {{{part}}} as {text!r} or as {other[part]!r}",
                hint="a part must not contain the text that separates it from the next one: name its levels in the "
                "mapping, or rename the files",
            )
