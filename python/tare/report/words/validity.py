"""The rules that a study's runs break, a sentence each; docs/concepts/validity.md."""

from __future__ import annotations

from collections.abc import Sequence

from tare.analyze.validity import Alarm
from tare.report.plain import plain

_NAMED_RUNS = 6
_NAMED_ARMS = 8
LONGEST = 2000
"""Characters of a sentence as reports show it: with what to do, which stands last."""


def warnings(alarms: Sequence[Alarm]) -> tuple[str, ...]:
    """`few-blocks, bridge and host: … Runs: … To do: …`; arms of which the same is to be said in one."""
    groups: dict[tuple[str, str, str], list[Alarm]] = {}
    for alarm in alarms:
        groups.setdefault((alarm.rule, alarm.what, alarm.do), []).append(alarm)
    return tuple(_told(group) for group in groups.values())


def _told(group: Sequence[Alarm]) -> str:
    first = group[0]
    arms = [plain(alarm.arm, 60) for alarm in group if alarm.arm is not None]
    if len(arms) > _NAMED_ARMS:
        arms = [*arms[:_NAMED_ARMS], f"{len(arms) - _NAMED_ARMS} more"]
    *most, last = arms or ["every arm"]
    subject = f"{', '.join(most)} and {last}" if most else last
    runs = list(dict.fromkeys(plain(run, 80) for alarm in group for run in alarm.runs))
    more = f" and {len(runs) - _NAMED_RUNS} more" if len(runs) > _NAMED_RUNS else ""
    named = f" Runs: {', '.join(runs[:_NAMED_RUNS])}{more}." if runs else ""
    return f"{first.rule}, {subject}: {first.what}.{named} To do: {first.do}."
