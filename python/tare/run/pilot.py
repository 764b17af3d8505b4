"""The pilot of a study, told by its records: what was chosen, and the plan with that put in."""

from __future__ import annotations

from tare.plan.model import Plan, PlannedRun
from tare.protocols.pilot import BLOCKS, Choice, choose, is_piloted, most_s
from tare.run.resume import Done, finished


def choice_of(plan: Plan, done: Done) -> Choice | None:
    """The measure phase after the pilot; `None` where none is chosen, and while the pilot runs.

    The first record made by a choice decides for all later ones: a run of the pilot that is made good afterwards
    changes nothing any more. Before there is one, the pilot's records decide, the same for whoever asks.
    """
    protocol = plan.study.protocol
    if not is_piloted(protocol) or len(finished(plan, done)) < BLOCKS:
        return None
    if done.choice is not None:
        return done.choice
    workload = plan.arm(plan.study.baseline).settings.workload
    pairs = {arm.name: plan.study.baseline_of(arm.name) for arm in plan.study.arms}
    baselines = {arm: baseline for arm, baseline in pairs.items() if arm != baseline}
    pilot_s, window_s = float(workload["measure_s"]), float(workload["window_s"])
    runs = [done.pilot[run.id] for run in plan.runs if run.id in done.pilot]
    return choose(runs, baselines, pilot_s=pilot_s, window_s=window_s, most=most_s(protocol, pilot_s))


def plan_of(plan: Plan, run: PlannedRun, choice: Choice | None) -> Plan:
    """The plan by which a run is made: as it is in the pilot, with the chosen measure phase after it."""
    if choice is None or run.block <= BLOCKS:
        return plan
    arms = []
    for arm in plan.study.arms:
        workload = {**arm.settings.workload, "measure_s": choice.measure_s}
        arms.append(arm.model_copy(update={"settings": arm.settings.model_copy(update={"workload": workload})}))
    return plan.model_copy(update={"study": plan.study.model_copy(update={"arms": tuple(arms)})})
