"""What a ledger proves so far: false positives and coverage, by protocol and together, against the goals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.truth.ledger import Comparison
from bench.truth.studies import AS_PUBLISHED, PROTOCOLS
from tare.calibrate.pooled import Share, false_positives, injected, share

MOST_FALSE, COMPARISONS = 0.05, 400
"""False positives at the most, over so many comparisons at the least."""
LEAST_COVERED, STUDIES = 0.93, 200
"""Coverage at the least, over so many studies of each effect at the least."""
ALL = "all of tare's"


@dataclass(frozen=True)
class Row:
    """`false`: A/A comparisons whose interval leaves 0 out. `covered`: effects whose interval holds the truth."""

    name: str
    false: Share
    covered: Share


@dataclass(frozen=True)
class Proved:
    """All that is said of a ledger. `effects`: by what was injected, over tare's own protocols."""

    protocols: tuple[Row, ...]
    databases: tuple[Row, ...]
    paths: tuple[Row, ...]
    machines: tuple[Row, ...]
    effects: tuple[Row, ...]
    comparisons: int
    torn: int

    @property
    def whole(self) -> Row:
        """All of tare's own protocols together."""
        return next(row for row in self.protocols if row.name == ALL)


def proved(comparisons: Sequence[Comparison], torn: int = 0) -> Proved:
    """Sum a ledger up."""
    own = [each for each in comparisons if each.protocol not in AS_PUBLISHED]
    by_protocol = [row for row in _rows(comparisons, lambda each: each.protocol) if row.false.of or row.covered.of]
    by_protocol.sort(key=lambda row: list(PROTOCOLS).index(row.name) if row.name in PROTOCOLS else len(PROTOCOLS))
    return Proved(
        protocols=(*by_protocol, _row(ALL, own)),
        databases=_rows(own, lambda each: each.database),
        paths=_rows(own, lambda each: each.path),
        machines=_rows(own, lambda each: each.machine),
        effects=_rows([each for each in own if each.injected], lambda each: str(each.injected)),
        comparisons=len(comparisons),
        torn=torn,
    )


def _rows(comparisons: Sequence[Comparison], by: Callable[[Comparison], str]) -> tuple[Row, ...]:
    return tuple(
        _row(name, [each for each in comparisons if by(each) == name])
        for name in sorted({by(each) for each in comparisons})
    )


def _row(name: str, comparisons: Sequence[Comparison]) -> Row:
    return Row(name, false_positives([each.as_result() for each in comparisons]), covered(comparisons))


def covered(comparisons: Iterable[Comparison]) -> Share:
    """Intervals that hold the truth, which the other studies of the same group and effect tell: `calibrate.pooled`.

    A group with fewer than three studies judges none.
    """
    groups: dict[tuple[str, ...], list[Comparison]] = {}
    for each in comparisons:
        if each.injected is not None:
            groups.setdefault((*each.group, each.injected), []).append(each)
    judged = [injected([each.as_result() for each in group], key[-1]).covered for key, group in groups.items()]
    return share(sum(each.count for each in judged), sum(each.of for each in judged))
