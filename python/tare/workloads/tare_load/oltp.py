"""sysbench's OLTP scripts as tare-load runs them, on sysbench's tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from tare.errors import StudyError
from tare.study.values import Strict
from tare.workloads.tare_load.work import LOAD_CONNECTIONS, Invocation

Script = Literal[
    "oltp_read_only",
    "oltp_read_write",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
]
READ_ONLY = frozenset({"oltp_read_only", "oltp_point_select"})
_OF_STEPS = frozenset({"oltp_read_only", "oltp_read_write", "oltp_write_only"})
_SQL = frozenset({"mysql", "postgresql"})
_Few = Annotated[int, Field(ge=0, le=255)]

_DATA = (
    "tables", "table_size", "rand_type", "rand_spec_iter", "rand_spec_pct", "rand_spec_res", "rand_pareto_h",
    "rand_zipfian_exp",
)  # fmt: skip
"""Options that determine the data; the indexed column's values have the distribution of the queries."""
_MIX = (
    "range_size", "point_selects", "simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges",
    "index_updates", "non_index_updates", "delete_inserts",
)  # fmt: skip


class OltpSpec(Strict):
    """A script of sysbench 1.0.20, with options by sysbench's names and its defaults."""

    script: Script = "oltp_read_only"
    tables: int = Field(default=1, ge=1, le=10_000)
    table_size: int = Field(default=10_000, ge=1, le=2**31 - 1)

    range_size: int = Field(default=100, ge=1, le=10_000_000)
    point_selects: _Few = 10
    range_selects: bool = True
    simple_ranges: _Few = 1
    sum_ranges: _Few = 1
    order_ranges: _Few = 1
    distinct_ranges: _Few = 1
    index_updates: _Few = 1
    non_index_updates: _Few = 1
    delete_inserts: _Few = 1
    skip_trx: bool = False

    rand_type: Literal["uniform", "gaussian", "special", "pareto", "zipfian"] = "special"
    rand_spec_iter: int = Field(default=12, ge=1, le=1000)
    rand_spec_pct: int = Field(default=1, ge=0, le=100)
    rand_spec_res: int = Field(default=75, ge=0, le=100)
    rand_pareto_h: float = Field(default=0.2, gt=0.0, lt=1.0)
    rand_zipfian_exp: float = Field(default=0.8, ge=0.0, le=10.0)

    @property
    def kinds(self) -> tuple[str, ...]:
        """One kind of operation: an event of the script."""
        return (self.script,)

    @property
    def unit(self) -> str:
        """Name that sysbench has for its events."""
        return "transactions"

    @property
    def ends_after(self) -> int | None:
        """Always `None`: only time ends the measure phase."""
        return None

    def has_steps(self, protocol: str) -> bool:  # noqa: ARG002 - other work depends on it
        """Whether an event takes several statements."""
        return self.script in _OF_STEPS

    def dataset(self) -> Mapping[str, str | int]:
        """Tables, rows and the distribution of values; the same for all scripts."""
        options = {name: getattr(self, name) for name in _DATA}
        return {name: value if isinstance(value, (str, int)) else repr(value) for name, value in options.items()}

    def load_invocation(self, protocol: str, run_dir: str) -> Invocation:  # noqa: ARG002 - it needs no file
        """Describe the load: create the tables, fill them, and create their index."""
        _must_be_sql(protocol)
        options = (*self._options(_DATA), f"--connections={LOAD_CONNECTIONS}")
        return Invocation("load", options, rows=self.tables * self.table_size)

    def measure_invocation(self, protocol: str, run_dir: str, measure_s: float) -> Invocation:  # noqa: ARG002 - it needs neither
        """Describe the measure phase: events of the script."""
        _must_be_sql(protocol)
        ranges = () if self.range_selects else ("--no-range-selects",)
        skip = ("--skip-trx",) if self.skip_trx else ()
        return Invocation("run", (*self._options((*_DATA, *_MIX)), *ranges, *skip))

    def _options(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return (
            f"--sysbench={self.script}",
            *(f"--{name.replace('_', '-')}={getattr(self, name)}" for name in names),
        )


def _must_be_sql(protocol: str) -> None:
    if protocol not in _SQL:
        raise StudyError(
            "sysbench's scripts are SQL, which this database does not support",
            hint="use mariadb, mysql or postgresql",
        )
