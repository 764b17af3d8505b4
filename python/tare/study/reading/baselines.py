"""Which arm each arm is compared with: one for all, or the one that is like it but for some factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.study.reading.document import Document, KeyPath
from tare.study.reading.factors import Levels, NamedLevels, resolved
from tare.study.reading.file import StudyFile
from tare.study.suggest import did_you_mean


@dataclass(frozen=True)
class Baselines:
    """`first`: the baseline, or the first of several. `levels`: what makes an arm one, where there are several."""

    first: NamedLevels
    levels: Levels

    def of(self, levels: Levels) -> Levels:
        """The levels of the arm that an arm with `levels` is compared with."""
        return {**levels, **self.levels} if self.levels else self.first.levels


def baselines(
    document: Document, file: StudyFile, names: Mapping[str, Sequence[str]], found: Sequence[NamedLevels]
) -> Baselines:
    """Read `baseline`: an arm's name, all its levels, or the levels of some factors. Every arm has to have one."""
    where: KeyPath = ("baseline",)
    if isinstance(file.baseline, str):
        wanted = file.baseline
        for arm in found:
            if arm.name == wanted:
                return Baselines(arm, {})
        hint = did_you_mean(wanted, [arm.name for arm in found], kind="arms")
        raise document.error(where, f"no arm is called {wanted!r}", hint=hint)
    levels = resolved(document, where, file.baseline, names)
    first = next((arm for arm in found if levels.items() <= arm.levels.items()), None)
    if first is None:
        hint = "is it excluded, or not among the arms?"
        raise document.error(where, "no arm has these levels", hint=hint)
    if len(levels) == len(names):
        return Baselines(first, {})
    several = Baselines(first, levels)
    have = [arm.levels for arm in found]
    for arm in found:
        if several.of(arm.levels) not in have:
            hint = "name a level of each factor, or do not exclude the arm that it is to be compared with"
            raise document.error(where, f"the arm {arm.name!r} has no baseline with these levels", hint=hint)
    return several
