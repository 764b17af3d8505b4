"""Assignment of stacks to components by the table components.toml; see docs/guides/explain.md."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any

KERNEL_MARK = "_[k]"
"""Suffix of kernel functions in tare-probe's stacks, as in perf(1)."""
NOT_NAMED = "not-named"
"""Component of kernel stacks without any function in the table."""
NO_SYMBOLS = "kernel"
"""Component of all kernel stacks if kernel functions have no names."""
USER = "user"
"""Component of the process's own code."""
DAEMONS = "daemons"
"""Part of the machine's time: the engine's daemons, and its programs for other containers."""
_UNKNOWN = "[unknown]"
_CROWDED = "[more stacks]"


class How(Enum):
    """Ways in which the table names a function: see the head of components.toml."""

    NAMES = "functions"
    WEAKLY = "weak"
    SPANS = "spans"
    NEUTRAL = "neutral"


@dataclass(frozen=True)
class Rule:
    """The table's entry for one function."""

    component: str
    how: How


@dataclass(frozen=True)
class Component:
    """One component of the table."""

    name: str
    title: str
    source: str


class Table:
    """Kernel functions → components. Built once, and queried for each distinct stack."""

    def __init__(self, tree: Mapping[str, Any]) -> None:
        self.version: str = tree["version"]
        self.components = tuple(
            Component(each["name"], each["title"], each["source"]) for each in tree["components"]
        )
        self._exact: dict[str, Rule] = {}
        self._prefixes: dict[str, Rule] = {}
        self._spans: dict[str, str] = {}
        self._span_prefixes: dict[str, str] = {}
        self._longest = 0
        self._known: dict[str, Rule | None] = {}
        for pattern in tree.get("neutral", ()):
            self._put(pattern, Rule("", How.NEUTRAL))
        for each in tree["components"]:
            for how in (How.NAMES, How.WEAKLY):
                for pattern in each.get(how.value, ()):
                    self._put(pattern, Rule(each["name"], how))
            for pattern in each.get(How.SPANS.value, ()):
                exact = not pattern.endswith("*")
                (self._spans if exact else self._span_prefixes)[pattern.removesuffix("*")] = each["name"]

    def _put(self, pattern: str, rule: Rule) -> None:
        """Add a pattern. Raises `ValueError` for a duplicate, as the order of entries would decide."""
        name = pattern.removesuffix("*")
        if not name or "*" in name:
            raise ValueError(f"components.toml: {pattern!r}: only a name's end can be left open")
        into = self._prefixes if pattern.endswith("*") else self._exact
        if into.get(name, rule) != rule:
            places = f"{into[name].component!r} and in {rule.component!r}"
            raise ValueError(f"components.toml: {pattern} is in {places}")
        into[name] = rule
        self._longest = max(self._longest, len(name))

    def rule(self, function: str) -> Rule | None:
        """Rule of a function: by its exact name, else by the longest matching prefix; `None` if there is none."""
        if function not in self._known:
            lengths = range(min(len(function), self._longest), 0, -1)
            rules = (self._prefixes.get(function[:length]) for length in lengths)
            self._known[function] = self._exact.get(function) or next((each for each in rules if each), None)
        return self._known[function]

    def _span(self, functions: Sequence[str]) -> str | None:
        for function in functions:
            if function in self._spans:
                return self._spans[function]
            for prefix, component in self._span_prefixes.items():
                if function.startswith(prefix):
                    return component
        return None

    def of_functions(self, functions: Sequence[str]) -> str:
        """Component of a stack's kernel functions, given from leaf to root; `NOT_NAMED` if no rule matches."""
        if (span := self._span(functions)) is not None:
            return span
        weak: str | None = None
        hidden = False
        for function in functions:
            rule = self.rule(function)
            if rule is None:
                hidden = True
            elif rule.how is How.NAMES:
                return rule.component
            elif rule.how is How.WEAKLY and weak is None and not hidden:
                weak = rule.component
        return weak or NOT_NAMED

    def of_stack(self, stack: str) -> str:
        """Component of a collapsed stack, given root first: of its kernel part if there is one, else `USER`."""
        frames = stack.split(";") if stack else []
        kernel = [frame.removesuffix(KERNEL_MARK) for frame in reversed(frames) if frame.endswith(KERNEL_MARK)]
        if kernel:
            return NO_SYMBOLS if set(kernel) == {_UNKNOWN} else self.of_functions(kernel)
        return NOT_NAMED if not frames or frames == [_CROWDED] else USER

    def title(self, component: str) -> str:
        """Title of a component in reports."""
        return _TITLES.get(component) or next(each.title for each in self.components if each.name == component)


_TITLES = {NOT_NAMED: "not named", NO_SYMBOLS: "kernel (no names)", USER: "own code"}


@cache
def components() -> Table:
    """Read the table that comes with tare."""
    text = files("tare.analyze.explain").joinpath("components.toml").read_text(encoding="utf-8")
    return Table(tomllib.loads(text))
