"""Which traps arms meet, and which of them set an arm apart from its baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from tare.one_line import plain
from tare.record.host_facts import HostFacts
from tare.record.run_record import RunRecord
from tare.study.model import Study
from tare.traps.of_arm import facts_of_arm
from tare.traps.of_run import facts_of_host, facts_of_run
from tare.traps.predicate import Answer, Facts, Known
from tare.traps.trap import TrapFile, load_traps

_NAMED = 4


@dataclass(frozen=True)
class Met:
    """A trap with the arms that meet it. `evidence`: its facts, as the first of these arms has them."""

    trap: TrapFile
    arms: tuple[str, ...]
    evidence: Mapping[str, Known]

    @property
    def named(self) -> str:
        """Which arms meet which trap."""
        more = len(self.arms) - _NAMED
        arms = f"{', '.join(map(plain, self.arms[:_NAMED]))}{f' and {more} more' if more > 0 else ''}"
        return f"{arms}: {self.trap.trap.title} [{self.trap.id}]."

    @property
    def brief(self) -> str:
        """The same with the remedy."""
        return f"{self.named} Remedy: {self.trap.trap.remedy.says}"

    @property
    def sentence(self) -> str:
        """The same with what it costs and how to avoid it."""
        trap = self.trap.trap
        return f"{self.named} Cost: {trap.cost.says} Remedy: {trap.remedy.says}"

    @property
    def tree(self) -> Mapping[str, object]:
        """The same for JSON, with the evidence."""
        trap = self.trap.trap
        return {
            "trap": self.trap.id,
            "title": trap.title,
            "arms": list(self.arms),
            "evidence": dict(self.evidence),
            "cost": trap.cost.says,
            "remedy": trap.remedy.says,
        }


@cache
def shipped_traps() -> tuple[TrapFile, ...]:
    """Traps that come with tare, read once a process."""
    return load_traps()


def traps_met(facts: Mapping[str, Facts], traps: Iterable[TrapFile] | None = None) -> tuple[Met, ...]:
    """Arm → facts; return the traps that any arm certainly meets."""
    met = []
    for known in shipped_traps() if traps is None else traps:
        arms = tuple(arm for arm, of_arm in facts.items() if known.trap.ask(of_arm) is Answer.YES)
        if arms:
            met.append(Met(known, arms, _evidence(known, facts[arms[0]])))
    return tuple(met)


def traps_apart(
    runs: Mapping[str, Sequence[Facts]], baseline_of: Mapping[str, str], traps: Iterable[TrapFile] | None = None
) -> tuple[Met, ...]:
    """Arm → facts of its runs; return traps that most runs of an arm meet, and most of its baseline's do not."""
    found = []
    for known in shipped_traps() if traps is None else traps:
        most = {arm: _most(known, facts) for arm, facts in runs.items()}
        arms = tuple(arm for arm, base in baseline_of.items() if most.get(arm) and most.get(base) is False)
        if arms:
            found.append(Met(known, arms, _evidence(known, runs[arms[0]][0])))
    return tuple(found)


def _most(known: TrapFile, runs: Sequence[Facts]) -> bool | None:
    """Whether most runs meet it; `None` without runs, or if most do not tell."""
    answers = [known.trap.ask(facts) for facts in runs]
    for answer, said in ((Answer.YES, True), (Answer.NO, False)):
        if 2 * answers.count(answer) > len(answers):
            return said
    return None


def _evidence(known: TrapFile, facts: Facts) -> Mapping[str, Known]:
    return {name: value for name in known.trap.facts if (value := facts.get(name)) is not None}


def planned_traps(study: Study) -> tuple[Met, ...]:
    """Return the traps that a study's text alone shows, baselines included."""
    return traps_met({arm.name: facts_of_arm(arm.settings) for arm in study.arms if not arm.control})


def recorded_traps(study: Study, records: Iterable[RunRecord]) -> tuple[Met, ...]:
    """Return the traps that set an arm of a study apart from its baseline, by its good and its refused runs."""
    if study.imported is not None:
        return ()
    runs = _by_arm(run for run in records if run.outcome.ok or run.outcome.refused)
    names = [arm.name for arm in study.arms if not arm.control]
    return traps_apart(runs, {name: base for name in names if (base := study.baseline_of(name)) != name})


def traps_behind(
    broken: Iterable[tuple[str, str | None]], records: Iterable[RunRecord]
) -> Mapping[str, tuple[Met, ...]]:
    """Validity rule → the traps that break it, of which most good runs of its arms tell; no rule without one.

    `broken`: rules with the arm concerned, or `None` for every arm.
    """
    runs = _by_arm(run for run in records if run.outcome.ok)
    arms_of: dict[str, dict[str, None]] = {}
    for rule, arm in broken:
        arms_of.setdefault(rule, {}).update(dict.fromkeys(runs if arm is None else (arm,)))
    behind = {
        rule: tuple(
            Met(known, arms, _evidence(known, runs[arms[0]][0]))
            for known in shipped_traps()
            if rule in known.trap.breaks
            and (arms := tuple(arm for arm in concerned if _most(known, runs.get(arm, ()))))
        )
        for rule, concerned in arms_of.items()
    }
    return {rule: found for rule, found in behind.items() if found}


def _by_arm(records: Iterable[RunRecord]) -> Mapping[str, list[Facts]]:
    runs: dict[str, list[Facts]] = {}
    for run in records:
        runs.setdefault(run.arm, []).append(facts_of_run(run))
    return runs


def host_traps(host: HostFacts) -> tuple[Met, ...]:
    """Return the traps that a host's facts alone show, for a server of any database on its own network."""
    facts = {**facts_of_host(host), "placed": "process", "net.own_namespace": False}
    return traps_met({"here": facts}, (known for known in shipped_traps() if not known.trap.hits.databases))
