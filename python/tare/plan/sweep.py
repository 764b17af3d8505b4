"""A sweep: one arm of a study with more and more threads, as a study of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from tare.errors import StudyError
from tare.study.model import Arm, Study
from tare.study.protocol_spec import FixedSpec
from tare.study.suggest import did_you_mean
from tare.workloads import Parameters

FACTOR = "threads"
_THREADS_KEY: Mapping[str, str] = {"tare-load": "connections"}
"""Workload → its key for what others call threads: the number of clients waiting for a reply at once."""
_RATES = ("fixed", "rate", "target", "throttle", "stages", "trace", "sustainable")
"""Keys that set a workload's rate: throughput then shows that rate and not what the server can do."""
_UNTIL = ("operations",)
"""Keys that end a phase after a number of operations; a sweep's runs last `measure_s` at any number of threads."""
_LONGEST_NAME = 63


def sweep_of(
    study: Study,
    models: Mapping[str, type[Parameters]],
    threads: Sequence[int],
    repetitions: int,
    arm: str | None = None,
) -> Study:
    """Return a study of the arm (default: the baseline) at each number of threads, `repetitions` times at random.

    `models`: workload → its parameters. Raises `StudyError` if the arm or its workload cannot be swept.
    """
    template = _arm(study, arm or study.baseline)
    counts = sorted(set(threads))
    if len(counts) < 2:
        raise StudyError("a sweep needs at least two numbers of threads", hint="such as --threads 1,4,16,64")
    _must_be_closed(template, models)
    arms = tuple(_with_threads(template, models, count) for count in counts)
    suffix = "-sweep"
    return Study(
        name=study.name[: _LONGEST_NAME - len(suffix)] + suffix,
        scale=study.scale,
        question=f"How many threads saturate {template.name} of {study.name}?",
        source=None,
        arms=arms,
        baseline=arms[0].name,
        factors={FACTOR: tuple(str(count) for count in counts)},
        varies={FACTOR: (f"workload.{_key_of(template)}",)},
        protocol=FixedSpec(
            name="fixed",
            blocks=repetitions,
            retries=study.protocol.retries,
            seed=study.protocol.seed,
            control=False,
        ),
        published=(),
        deviations=(),
        text=study.text,
        files=study.files,
    )


def _arm(study: Study, name: str) -> Arm:
    chosen = next((arm for arm in study.arms if arm.name == name and not arm.control), None)
    if chosen is None:
        hint = did_you_mean(name, [arm.name for arm in study.arms if not arm.control], kind="arms")
        raise StudyError(f"{study.name} has no arm {name!r}", hint=hint)
    return chosen


def _must_be_closed(arm: Arm, models: Mapping[str, type[Parameters]]) -> None:
    workload, settings = arm.settings.workload_name, arm.settings.workload
    if _key_of(arm) not in models[workload].model_fields:
        raise StudyError(f"{workload} has no threads to vary")
    for key in _RATES:
        if settings.get(key):
            why = f"workload.{key} of {arm.name} sets a rate, which no number of threads changes"
            raise StudyError(why, hint=f"leave workload.{key} out in a copy of the study")


def _key_of(arm: Arm) -> str:
    return _THREADS_KEY.get(arm.settings.workload_name, FACTOR)


def _with_threads(arm: Arm, models: Mapping[str, type[Parameters]], count: int) -> Arm:
    settings = arm.settings
    asked = {key: value for key, value in settings.workload.items() if key not in _UNTIL}
    try:
        model = models[settings.workload_name]
        whole = model.model_validate_json(json.dumps({**asked, _key_of(arm): count})).model_dump(mode="json")
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise StudyError(f"{settings.workload_name} cannot be run with {count} threads: {reason}") from error
    return Arm(
        name=f"{FACTOR}-{count}",
        levels={FACTOR: str(count)},
        settings=settings.model_copy(update={"workload": whole}),
    )
