"""Jobs of tare-load: the user's own statements with typed generators of values.

Reading a study refuses all that the program would refuse: docs/reference/workloads/tare-load.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from tare.errors import StudyError
from tare.study.values import MOST, Count, Strict
from tare.workloads.tare_load.work import LOAD_CONNECTIONS, LOAD_PIPELINE, Invocation

FORMAT, FILE = 1, "job.json"
RECORD = "record"
"""Generator that counts through the records while they are loaded."""
KEEP = frozenset({"redis", "postgresql", "mysql"})
"""Protocols whose replies a later step can use."""
_LARGEST_TEXT = 1 << 24
_PLACE = re.compile(r"\{([^{}]*)\}")
_Whole = Annotated[int, Field(ge=-MOST, le=MOST)]
_Share = Annotated[float, Field(ge=0.0, le=1.0)]
_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
_Text = Annotated[str, Field(min_length=1, max_length=1 << 16, pattern=r"^[^\x00]*$")]


class Range(Strict):
    """Range of whole numbers, including both ends."""

    model_config = ConfigDict(serialize_by_alias=True)

    from_: _Whole = Field(alias="from")
    to: _Whole

    @model_validator(mode="after")
    def _rises(self) -> Range:
        if self.to < self.from_:
            raise ValueError("`to` is below `from`")
        return self


class Zipfian(Range):
    """Draws number n of the range in proportion to 1/n^exponent."""

    exponent: float = Field(ge=0.0, le=10.0)


class Hotspot(Range):
    """Draws the share `operations` of numbers from the first share `data` of the range; both parts uniformly."""

    data: _Share
    operations: _Share


class Exponential(Range):
    """Draws numbers that fall off exponentially from the start of the range; `mean`: distance from the start."""

    mean: float = Field(gt=0.0, le=float(MOST))


class RandomText(Strict):
    """Random text of `length` letters and digits."""

    length: int = Field(ge=0, le=_LARGEST_TEXT)


class Generator(Strict):
    """Generator of values: exactly one of its kinds."""

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
        """The generator as a tree for a job file."""
        return self.model_dump(mode="json", exclude_none=True)


class Expect(Strict):
    """Least contents of a right reply. A missing row is an error unless `may_miss`."""

    rows: int = Field(default=0, ge=0, le=2**32 - 1)
    bytes: int = Field(default=0, ge=0, le=2**32 - 1)
    may_miss: bool = False


class _Brief(Strict):
    """Leaves out what is not set: the digests of older stores and data sets do not have keys that came later."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        later = {"keep": {}, "tries": 1, "think_ms": 0.0}
        return {key: value for key, value in dump(self).items() if key not in later or value != later[key]}


class Step(_Brief):
    """One request and its reply. `{name}` in `send` stands for a value of the generator of that name.

    `keep`: names of values of the reply's first row, with their columns (from 1), which later steps use likewise.
    """

    send: _Text
    expect: Expect = Expect()
    keep: Mapping[Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")], Annotated[int, Field(ge=1, le=1024)]] = (
        Field(default_factory=dict)
    )


class Operation(_Brief):
    """Unit that is counted and timed: steps, each of which waits for the reply to the step before.

    `tries`: how often it is tried if it ends in a deadlock or a serialization failure; its time includes all tries.
    `think_ms`: how long its connection then waits, in a closed loop.
    """

    name: _Name
    weight: float = Field(default=1.0, gt=0.0, le=1e9)
    steps: tuple[Step, ...] = Field(min_length=1, max_length=255)
    tries: int = Field(default=1, ge=1, le=1_000_000)
    think_ms: float = Field(default=0.0, ge=0.0, le=1e7)


class Load(Strict):
    """Data to load before anything is measured: `steps` run once for each record, whose number is `{record}`.

    `statements`: executed once before, to create tables.
    """

    records: Count = Field(ge=1)
    first: _Whole = 0
    statements: tuple[_Text, ...] = ()
    steps: tuple[Step, ...] = Field(min_length=1, max_length=255)


class Job(Strict):
    """The user's own operations, their generators, and how their data are loaded."""

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
            raise ValueError(
                f"the generator name {RECORD!r} is reserved for the number of the loaded record; rename yours"
            )
        for each in self.operations:
            self._must_be_known(f"operation {each.name!r}", each.steps, tuple(self.generators))
        if self.load is not None:
            self._must_be_known("load", self.load.steps, (*self.generators, RECORD))
            if any(step.keep for step in self.load.steps):
                raise ValueError("load: its steps keep no values; `keep` is for operations")
        return self

    @staticmethod
    def _must_be_known(where: str, steps: Iterable[Step], generators: Sequence[str]) -> None:
        names = generators
        for step in steps:
            rest = _PLACE.sub("", step.send)
            if "{" in rest:
                raise ValueError(f"{where}: unclosed brace in {step.send!r}")
            for name in _PLACE.findall(step.send):
                if name not in names:
                    choices = f"there are {', '.join(names)}" if names else "there is none"
                    raise ValueError(f"{where}: no generator {name!r} for {step.send!r} ({choices})")
            if clash := next((name for name in step.keep if name in generators), None):
                raise ValueError(f"{where}: {clash!r} is a generator, and also a value that is kept; rename one")
            names = (*names, *step.keep)

    @property
    def thinks(self) -> bool:
        """Whether a connection waits after some operation."""
        return any(each.think_ms for each in self.operations)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the operations, in order."""
        return tuple(each.name for each in self.operations)

    @property
    def unit(self) -> str:
        """Unit of the operations, which may be anything."""
        return "operations"

    @property
    def ends_after(self) -> int | None:
        """Always `None`: only time ends the measure phase."""
        return None

    def has_steps(self, protocol: str) -> bool:  # noqa: ARG002 - other work depends on it
        """Whether an operation takes several requests, or its connection waits after it."""
        return self.thinks or any(len(each.steps) > 1 or each.tries > 1 for each in self.operations)

    def dataset(self) -> Mapping[str, str | int]:
        """Number of records, and all statements and steps of the load."""
        if self.load is None:
            return {}
        loaded = {"job": _load_file(self, self.load), "statements": self.load.statements}
        return {"records": self.load.records, "load": json.dumps(loaded, sort_keys=True)}

    def load_invocation(self, protocol: str, run_dir: str) -> Invocation:
        """Describe the load: its steps, once for each record."""
        if self.load is None:
            raise StudyError("this job loads nothing", hint="give it a `load`, with records and steps")
        records = self.load.records
        options = (
            f"--job={run_dir}/{FILE}",
            f"--connections={LOAD_CONNECTIONS}",
            f"--depth={1 if len(self.load.steps) > 1 else LOAD_PIPELINE}",
            f"--operations={records}",
        )
        return Invocation(
            "run",
            options,
            {FILE: json.dumps(_load_file(self, self.load))},
            statements=self.load.statements,
            names_schema=_has_schema(protocol),
            rows=records,
            right=records,
        )

    def measure_invocation(self, protocol: str, run_dir: str, measure_s: float) -> Invocation:  # noqa: ARG002 - no time of its own
        """Describe the measure phase: the job's operations."""
        if protocol not in KEEP and any(step.keep for each in self.operations for step in each.steps):
            raise StudyError(
                f"tare-load keeps no values of replies with the protocol {protocol}", hint="leave `keep` out"
            )
        file = json.dumps(_file(self.generators, self.operations))
        return Invocation("run", (f"--job={run_dir}/{FILE}",), {FILE: file}, names_schema=_has_schema(protocol))


def _has_schema(protocol: str) -> bool:
    """Whether connections select a schema. CQL statements name their keyspace, which statements create."""
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
