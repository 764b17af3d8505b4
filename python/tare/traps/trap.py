"""A trap: how it is recognised in facts, whom it hits, what it costs, how to avoid it, and its sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from tare.errors import StudyError
from tare.study.catalogue import traps_folder
from tare.study.model import Name
from tare.study.reading.document import Sort, read
from tare.study.reading.file import Text
from tare.study.reading.problems import checked
from tare.study.values import NetworkKind
from tare.traps.facts import FACTS, UNDER_LOAD
from tare.traps.predicate import Answer, Facts, Known, Predicate, PredicateModel

FORMAT = 1
_TRAP = Sort("a trap", "copy a file of knowledge/traps to start from", "make it a readable file, or remove it")
Where = Literal["docker", "podman", "compose", "kubernetes", "host", "server", "image"]
Study = Mapping[str, Mapping[str, bool | int | float | str]]


class Hits(PredicateModel):
    """Whom it hits. Empty: any."""

    databases: tuple[Name, ...] = ()
    versions: Text | None = None


class Cost(PredicateModel):
    """What it costs: in words, and the claims of the knowledge base with figures."""

    says: Text
    of: Literal["performance", "correctness", "availability"] = "performance"
    claims: tuple[Name, ...] = ()
    """Ids of claims, whose effects are the expected cost."""
    unit_cost: NetworkKind | None = None
    """Network whose [unit cost](unit-costs.md) on the machine at hand is what a request costs more."""


class Remedy(PredicateModel):
    """How to avoid it."""

    says: Text
    lines: Mapping[Where, Text] = Field(default_factory=dict)
    """Where → a line to paste there."""


class Source(PredicateModel):
    """Where it is described."""

    title: Text
    url: Annotated[str, Field(pattern=r"^https?://\S+$")]
    read: Literal["whole", "part", "notes"]
    """What of it was read; `notes`: the project's own notes on it."""
    weak_because: Text | None = None
    """Why it proves little; without this, it says what the trap says."""


class Examples(PredicateModel):
    """Facts that meet it, and facts that do not: the test of its predicate."""

    met: tuple[Mapping[str, Known], ...] = Field(min_length=1)
    not_met: tuple[Mapping[str, Known], ...] = Field(min_length=1)


class Trap(PredicateModel):
    """One trap. Its id is the name of its file."""

    format: Literal[1]
    title: Text
    says: Text
    """What happens and why, in a sentence or two."""
    hits: Hits = Hits()
    when: Predicate
    """How it is recognised; all facts that it asks for are shown as the evidence."""
    cost: Cost
    remedy: Remedy
    breaks: tuple[Name, ...] = ()
    """Validity rules that it breaks: docs/concepts/validity.md."""
    study: Study = Field(default_factory=dict)
    """Factor that would measure it here: level → dotted keys of a study; empty if tare cannot vary it."""
    sources: tuple[Source, ...] = Field(min_length=1)
    examples: Examples

    @field_validator("when")
    @classmethod
    def _asks_for_facts(cls, when: Predicate) -> Predicate:
        if unknown := sorted(set(when.facts()) - FACTS.keys()):
            raise ValueError(f"asks for {', '.join(unknown)}: not a fact (see docs/reference/traps.md)")
        return when

    @model_validator(mode="after")
    def _examples_agree(self) -> Trap:
        for wanted, each in ((Answer.YES, self.examples.met), (Answer.NO, self.examples.not_met)):
            for n, facts in enumerate(each, 1):
                if (said := self.ask(facts)) is not wanted:
                    name = "met" if wanted is Answer.YES else "not_met"
                    raise ValueError(f"the predicate says {said.value} of example {n} of `{name}`")
        return self

    @property
    def facts(self) -> tuple[str, ...]:
        """Facts that it asks for, the first mentioned first."""
        return tuple(dict.fromkeys(self.when.facts()))

    @property
    def under_load(self) -> bool:
        """Whether it is recognised only by what load shows."""
        return any(name in UNDER_LOAD for name in self.facts)

    def ask(self, facts: Facts) -> Answer:
        """Whether it is met; no for a database that it does not hit."""
        database = facts.get("database")
        if self.hits.databases and database is not None and database not in self.hits.databases:
            return Answer.NO
        said = self.when.ask(facts)
        return Answer.UNKNOWN if self.hits.databases and database is None and said is Answer.YES else said


@dataclass(frozen=True)
class TrapFile:
    """A trap with its id and the file it was read from."""

    id: str
    trap: Trap
    file: Path


def load_trap(path: Path) -> TrapFile:
    """Read one trap. Raises `StudyError` naming file, line, column and key path."""
    document = read(path, _TRAP)
    given = document.tree.get("format")
    if isinstance(given, int) and given > FORMAT:
        hint = f"this tare reads format {FORMAT}: use a newer tare"
        raise document.error(("format",), f"format {given} is newer than this tare", hint=hint)
    return TrapFile(path.stem, checked(Trap, document), path)


def load_traps(folders: Iterable[Path] | None = None) -> tuple[TrapFile, ...]:
    """All traps below the folders, by id; without any, those that come with tare."""
    traps: dict[str, TrapFile] = {}
    for path in _files((traps_folder(),) if folders is None else folders):
        known = load_trap(path)
        if known.id in traps:
            raise StudyError(f"{path}: the trap {known.id!r} already exists, in {traps[known.id].file}")
        traps[known.id] = known
    return tuple(traps[each] for each in sorted(traps))


def _files(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(folder.glob("**/*.yaml"))
