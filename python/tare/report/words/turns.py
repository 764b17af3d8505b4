"""A note on studies whose arms took turns: what spreads their ratios, and what would narrow the intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tare.analyze.statistics.turns import Spread, generations_of, spread_of
from tare.record.run_record import RunRecord
from tare.study.model import Study


def took_turns(study: Study, records: Sequence[RunRecord]) -> Iterator[str]:
    """Yield a sentence for the arm whose ratio to its baseline spreads most; nothing for other protocols."""
    if study.protocol.name != "rotate":
        return
    generations = generations_of([record for record in records if record.outcome.ok])
    spreads: dict[str, Spread] = {}
    for arm in (arm.name for arm in study.arms):
        baseline = study.baseline_of(arm)
        both = [each for each in generations if {arm, baseline} <= {*each.arms}]
        if arm != baseline and (spread := spread_of(both, arm, baseline)) is not None:
            spreads[arm] = spread
    if not spreads:
        return
    name, widest = max(spreads.items(), key=lambda item: item[1].within + item[1].between)
    within, between = (100 * math.sqrt(part) for part in (widest.within, widest.between))
    yield (
        f"Arms took turns in {len(generations)} generations. {name} spreads most between them: by {within:.2g} % "
        f"(standard deviation) as its turns are few, and by {between:.2g} % as servers differ when they are "
        f"started again. More {widest.helps} would narrow its interval most."
    )
