"""The parts of files' names: what all have in common, and what differs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

_SEPARATOR = r"[/_\-. =,+@:]"
_STAMP = r"(?:19|20)\d\d-\d\d-\d\d(?:[T_ -]\d\d[-:.]?\d\d(?:[-:.]?\d\d)?)?(?:[+-]\d{4}|Z)?(?![^/_\-. =,+@:])"
"""A date, perhaps with a time: one part, though it has separators."""
_TOKENS = re.compile(rf"{_STAMP}|{_SEPARATOR}|[^/_\-. =,+@:]+")
_STAMP_FIRST = re.compile(rf"(?P<stamp>{_STAMP})(?P<between>{_SEPARATOR})(?P<rest>.+?)(?P<end>(?:\.\w+)?)")
_STAMP_LAST = re.compile(rf"(?P<rest>.+?)(?P<between>{_SEPARATOR})(?P<stamp>{_STAMP})(?P<end>(?:\.\w+)?)")
_PREFIXED = re.compile(r"(\D+)(\d+)")
_SUFFIXED = re.compile(r"(\d+)(\D+)")
_LAST_NUMBER = re.compile(r"(.*[^0-9])(\d+)")


@dataclass(frozen=True)
class Column:
    """A part of the names that differs. `beside`: the letters next to it, as `run` in `run1`."""

    values: tuple[str, ...]
    beside: str = ""

    @property
    def numeric(self) -> bool:
        """Whether every text is a whole number."""
        return all(value.isdecimal() for value in self.values)


@dataclass(frozen=True)
class Names:
    """Names of one form: texts that all have, and columns. `others`: names of other forms."""

    names: tuple[str, ...]
    pieces: tuple[str | Column, ...]
    others: tuple[str, ...] = field(default=())

    @property
    def columns(self) -> list[Column]:
        """The parts that differ."""
        return [piece for piece in self.pieces if isinstance(piece, Column)]


def names_of(names: Sequence[str]) -> Names:
    """Cut names into their parts: at every separator if all have the same ones, else at slashes."""
    fine = [_TOKENS.findall(name) for name in names]
    if len({_form(tokens) for tokens in fine}) == 1:
        return Names(tuple(names), tuple(_pieces(list(zip(*fine, strict=True)))))
    depth, most = Counter(name.count("/") for name in names).most_common(1)[0]
    if most < _MAIN * len(names) and (tails := _tails(names)) is not None:
        cut = names_of(tails)
        return Names(tuple(names), tuple(_joined(["**/", *cut.pieces])), ())
    kept = [name for name in names if name.count("/") == depth]
    pieces: list[str | Column] = []
    for n, texts in enumerate(zip(*(name.split("/") for name in kept), strict=True)):
        pieces += [*(["/"] if n else []), *_component(texts)]
    return Names(tuple(kept), tuple(_joined(pieces)), tuple(name for name in names if name.count("/") != depth))


_MAIN = 0.75
"""Share of names at one depth of folders, above which the others are left out."""


def has_separator(text: str) -> bool:
    """Whether a text holds what separates parts of names."""
    return re.search(_SEPARATOR, text) is not None


def _tails(names: Sequence[str]) -> tuple[str, ...] | None:
    """As many last folders of each name as all have; `None` if that does not tell the names apart."""
    folders = min(name.count("/") for name in names)
    tails = tuple("/".join(name.split("/")[-folders - 1 :]) for name in names)
    return tails if len(set(tails)) == len(names) else None


def _form(tokens: Sequence[str]) -> tuple[str, ...]:
    return tuple(token if re.fullmatch(_SEPARATOR, token) else "x" for token in tokens)


def _pieces(columns: Sequence[Sequence[str]]) -> list[str | Column]:
    pieces: list[str | Column] = []
    for texts in columns:
        pieces += _column(texts)
    return _joined(pieces)


def _column(texts: Sequence[str]) -> list[str | Column]:
    """A text that all have; or a column, with the letters that all have beside a number apart."""
    if len(set(texts)) == 1:
        return [texts[0]]
    for form, at in ((_PREFIXED, 1), (_SUFFIXED, 2)):
        matches = [form.fullmatch(text) for text in texts]
        beside = {match.group(at) for match in matches if match}
        if all(matches) and len(beside) == 1:
            letters = beside.pop()
            number = Column(tuple(match.group(3 - at) for match in matches if match), letters.lower())
            return [letters, number] if at == 1 else [number, letters]
    return [Column(tuple(texts))]


_SHARED = 0.75
"""Share of texts that must differ from another one in one part alone, for that part to be one."""


def _component(texts: Sequence[str]) -> list[str | Column]:
    """A folder or file name, whose words may differ in number."""
    if len(set(texts)) == 1:
        return [texts[0]]
    fine = [_TOKENS.findall(text) for text in texts]
    if len({_form(tokens) for tokens in fine}) == 1:
        return _pieces(list(zip(*fine, strict=True)))
    return _stamped(texts) or _middles(texts)


def _middles(texts: Sequence[str]) -> list[str | Column]:
    """What is between the common ends of texts, cut into words that come again or before its last number."""
    shortest = min(texts, key=len)
    begin = _common(texts, shortest)
    end = _common([text[::-1] for text in texts], shortest[::-1])
    begin = begin[: len(begin) - len(re.split(_SEPARATOR, begin)[-1])]
    end = end[: len(end) - len(re.split(_SEPARATOR, end)[-1])][::-1]
    if len(begin) + len(end) >= len(shortest):
        begin = ""
    middles = [text[len(begin) : len(text) - len(end)] for text in texts]
    if any(not middle for middle in middles):
        return [Column(tuple(texts))]
    if (crossed := _crossed(middles)) is not None:
        return [begin, *crossed, end]
    matches = [_LAST_NUMBER.fullmatch(middle) for middle in middles]
    if all(matches):
        heads = [match.group(1) for match in matches if match]
        between = _common([head[::-1] for head in heads], min(heads, key=len)[::-1])[::-1]
        if re.match(_SEPARATOR, between) and all(len(head) > len(between) for head in heads):
            columns = [Column(tuple(head[: len(head) - len(between)] for head in heads))]
            letters = re.sub(_SEPARATOR, "", between).lower()
            last = Column(tuple(match.group(2) for match in matches if match), letters)
            return [begin, *columns, between, last, end]
    return [begin, *_column(middles), end]


def _stamped(texts: Sequence[str]) -> list[str | Column] | None:
    """A date at the beginning or end of all texts, and what the rest of them is."""
    for first, form in ((True, _STAMP_FIRST), (False, _STAMP_LAST)):
        matches = [match for text in texts if (match := form.fullmatch(text))]
        if len(matches) == len(texts) and len({(match["between"], match["end"]) for match in matches}) == 1:
            stamp, rest = (
                Column(tuple(match["stamp"] for match in matches)),
                _component([m["rest"] for m in matches]),
            )
            between, end = matches[0]["between"], matches[0]["end"]
            return [stamp, between, *rest, end] if first else [*rest, between, stamp, end]
    return None


def _crossed(texts: Sequence[str]) -> list[str | Column] | None:
    """First and other words as two columns, if the same other words come with several first ones (or the last)."""
    best: tuple[tuple[float, int], list[str | Column]] | None = None
    for words in (1, -1, 2, -2, 3, -3):
        cuts = [_cut(text, words) for text in texts]
        if any(cut is None for cut in cuts):
            continue
        heads, between, tails = zip(*(cut for cut in cuts if cut), strict=True)
        few, many = (heads, tails) if words > 0 else (tails, heads)
        if len(set(between)) > 1 or len(set(few)) < 2:
            continue
        of_rest: dict[str, set[str]] = {}
        for rest, head in zip(many, few, strict=True):
            of_rest.setdefault(rest, set()).add(head)
        shared = sum(len(of_rest[rest]) > 1 for rest in many) / len(texts)
        worth = (shared, -len(set(few)))
        if shared >= _SHARED and (best is None or worth > best[0]):
            best = (worth, [*_column(heads), between[0], *_column(tails)])
    return None if best is None else best[1]


def _cut(text: str, words: int) -> tuple[str, str, str] | None:
    """Cut after so many words, or before so many last ones."""
    at = [match.start() for match in re.finditer(_SEPARATOR, text)]
    if len(at) < abs(words):
        return None
    place = at[words - 1] if words > 0 else at[words]
    cut = (text[:place], text[place], text[place + 1 :])
    return cut if cut[0] and cut[2] else None


def _common(texts: Sequence[str], shortest: str) -> str:
    """What all texts begin with."""
    for n, letter in enumerate(shortest):
        if any(text[n] != letter for text in texts):
            return shortest[:n]
    return shortest


def _joined(pieces: Sequence[str | Column]) -> list[str | Column]:
    joined: list[str | Column] = []
    for piece in pieces:
        if isinstance(piece, str) and joined and isinstance(joined[-1], str):
            joined[-1] += piece
        elif piece != "":
            joined.append(piece)
    return joined
