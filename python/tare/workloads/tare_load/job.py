"""What tare-load sends: one's own statements with typed generators, as tare-load's job files have them.

All that the program would refuse is refused when the study is read: docs/reference/workloads/tare-load.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from tare.errors import StudyError
from tare.study.values import MOST, Count, Strict
from tare.workloads.tare_load.work import LOAD_CONNECTIONS, LOAD_PIPELINE, Sending

FORMAT, FILE = 1, "job.json"
RECORD = "record"
"""The generator that counts through the records while they are loaded."""
_LARGEST_TEXT = 1 << 24
_PLACE = re.compile(r"\{([^{}]*)\}")
_Whole = Annotated[int, Field(ge=-MOST, le=MOST)]
_Share = Annotated[float, Field(ge=0.0, le=1.0)]
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
_Text = Annotated[str, Field(min_length=1, max_length=1 << 16, pattern=r"^[^\x00]*$")]


class Range(Strict):
    """Whole numbers, both ends among them."""

    model_config = ConfigDict(serialize_by_alias=True)

    from_: _Whole = Field(alias="from")
    to: _Whole

    @model_validator(mode="after")
    def _rises(self) -> Range:
        if self.to < self.from_:
            raise ValueError("`to` is below `from`")
        return self


class Zipfian(Range):
    """Number n of the range is drawn in proportion to 1/n^exponent."""

    exponent: float = Field(ge=0.0, le=10.0)


class Hotspot(Range):
    """A share `operations` of all draws goes to the first share `data` of the range, evenly on either side."""

    data: _Share
    operations: _Share


class Exponential(Range):
    """Falls off exponentially from the start of the range; `mean` in numbers."""

    mean: float = Field(gt=0.0, le=float(MOST))


class RandomText(Strict):
    """So many random letters and digits."""

    length: int = Field(ge=0, le=_LARGEST_TEXT)


class Generator(Strict):
    """Where values come from: exactly one of these."""

    uniform: Range | None = None
    zipfian: Zipfian | None = None
    hotspot: Hotspot | None = None
    exponential: Exponential | None = None
    sequential: Range | None = None
    text: RandomText | None = None
    choice: Annotated[tuple[str, ...], Field(min_length=1, max_length=1024)] | None = None

    @model_validator(mode="after")
    def _is_one(self) -> Generator:
        if len(self.tree) != 1:
            raise ValueError(f"a generator is exactly one of {', '.join(type(self).model_fields)}")
        return self

    @property
    def tree(self) -> Mapping[str, Any]:
        """As a job file has it."""
        return self.model_dump(mode="json", exclude_none=True)


class Expect(Strict):
    """What a right reply has at least. A row that is missing is an error unless `may_miss`."""

    rows: int = Field(default=0, ge=0, le=2**32 - 1)
    bytes: int = Field(default=0, ge=0, le=2**32 - 1)
    may_miss: bool = False


class Step(Strict):
    """One request and its reply. A `{name}` in `send` is a value of the generator of that name."""

    send: _Text
    expect: Expect = Expect()


class Operation(Strict):
    """What is counted and timed as one: steps, each of which waits for the reply to the one before."""

    name: _Name
    weight: float = Field(default=1.0, gt=0.0, le=1e9)
    steps: tuple[Step, ...] = Field(min_length=1, max_length=255)


class Load(Strict):
    """What is loaded before anything is measured: `steps` once for each record, whose number is `{record}`.

    `statements`: sent once before, to make tables where the database has any.
    """

    records: Count = Field(ge=1)
    first: _Whole = 0
    statements: tuple[_Text, ...] = ()
    steps: tuple[Step, ...] = Field(min_length=1, max_length=255)


class Job(Strict):
    """A mix of one's own operations, and how their data are loaded."""

    generators: Mapping[Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")], Generator] = Field(
        default_factory=dict
    )
    operations: tuple[Operation, ...] = Field(min_length=1, max_length=64)
    load: Load | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Job:
        names = [each.name for each in self.operations]
        if doubled := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"two operations are called {doubled!r}")
        if RECORD in self.generators:
            raise ValueError(f"the generator {RECORD!r} is the number of the record that is loaded; rename yours")
        for each in self.operations:
            self._must_be_known(f"operation {each.name!r}", each.steps, self.generators)
        if self.load is not None:
            self._must_be_known("load", self.load.steps, (*self.generators, RECORD))
        return self

    @staticmethod
    def _must_be_known(where: str, steps: Iterable[Step], known: Iterable[str]) -> None:
        names = tuple(known)
        for step in steps:
            rest = _PLACE.sub("", step.send)
            if "{" in rest:
                raise ValueError(f"{where}: a brace is opened and not closed in {step.send!r}")
            for name in _PLACE.findall(step.send):
                if name not in names:
                    choices = f"there are {', '.join(names)}" if names else "there is none"
                    raise ValueError(f"{where}: no generator {name!r} for {step.send!r} ({choices})")

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the operations, in order."""
        return tuple(each.name for each in self.operations)

    @property
    def unit(self) -> str:
        """Whatever they are."""
        return "operations"

    @property
    def ends_after(self) -> int | None:
        """Time alone ends a measure phase."""
        return None

    def has_steps(self, protocol: str) -> bool:  # noqa: ARG002 - of other work it depends on it
        """Whether an operation waits for a reply before it goes on."""
        return any(len(each.steps) > 1 for each in self.operations)

    def dataset(self) -> Mapping[str, str | int]:
        """What is loaded, word by word."""
        if self.load is None:
            return {}
        loaded = {"job": _load_file(self, self.load), "statements": self.load.statements}
        return {"records": self.load.records, "load": json.dumps(loaded, sort_keys=True)}

    def filling(self, protocol: str, run_dir: str) -> Sending:
        """The load's steps, once for each record."""
        if self.load is None:
            raise StudyError("this job loads nothing", hint="give it a `load`, with records and steps")
        records = self.load.records
        options = (
            f"--job={run_dir}/{FILE}",
            f"--connections={LOAD_CONNECTIONS}",
            f"--depth={1 if len(self.load.steps) > 1 else LOAD_PIPELINE}",
            f"--operations={records}",
        )
        return Sending(
            "run",
            options,
            {FILE: json.dumps(_load_file(self, self.load))},
            statements=self.load.statements,
            names_schema=_has_schema(protocol),
            rows=records,
            right=records,
        )

    def driving(self, protocol: str, run_dir: str, measure_s: float) -> Sending:  # noqa: ARG002 - no time of its own
        """The operations."""
        file = json.dumps(_file(self.generators, self.operations))
        return Sending("run", (f"--job={run_dir}/{FILE}",), {FILE: file}, names_schema=_has_schema(protocol))


def _has_schema(protocol: str) -> bool:
    """A keyspace is there when statements make it, so that statements of CQL name it themselves."""
    return protocol != "cql"


def _load_file(job: Job, load: Load) -> dict[str, Any]:
    record = Generator.model_validate({"sequential": {"from": load.first, "to": load.first + load.records - 1}})
    return _file({**job.generators, RECORD: record}, (Operation(name="load", steps=load.steps),))


def _file(generators: Mapping[str, Generator], operations: Iterable[Operation]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "generators": {name: each.tree for name, each in generators.items()},
        "operations": [each.model_dump(mode="json") for each in operations],
    }
