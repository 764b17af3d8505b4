"""What each part of a name, and each thing that reports say, most likely is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tare.imports.guess.names import Column
from tare.imports.guess.survey import SeenFile
from tare.imports.reading import UNSAID

_PLATFORM = re.compile(
    r"(?i)bare|metal|native|\bhost|physical|docker|container|podman|\blxc|\blxd|\bvms?\b|\bvm\d|kvm|qemu|xen\b|vmware|"
    r"virtual|gvisor|runsc|kata|\brunc|\bcrun|k8s|kube|firecracker|singularity|nspawn|bhyve|jail|hypervisor|openvz"
)
_BASELINE = re.compile(r"(?i)bare|metal|native|physical|baseline|\bhost|\bnone\b|without|\bno\b|\bfalse\b")
_REPETITION = re.compile(
    r"(?i)^(?:runs?|reps?|repeat|repetitions?|iter\w*|trial|try|attempt|round|test|sample|r|n|i)$"
)
_DATE = re.compile(
    r"(?:19|20)\d\d-\d\d-\d\d.*|(?:19|20)\d\d(?:0\d|1[0-2])(?:[0-3]\d)(?:\d{4,6})?|1[0-9]{9}(?:\d{3})?"
)
_SERIAL = 5
"""Digits of a number, different in each file, that is a time or a process and no setting."""
UNNAMED = "no text names a platform: is this what was compared?"
_CONFIRMED = "the reports say the same"
_NEVER = frozenset({"version"})
"""What reports say that describes the tool, not the load."""


class Role(Enum):
    """What a mapping makes of a part."""

    FACTOR = "factor"
    CONDITION = "condition"
    REPETITION = "repetition"
    IGNORED = "ignored"


@dataclass(frozen=True)
class Part:
    """A part with its role, and why. `values`: text of each file, or of each good report if `said`.

    `confirmed`: the reports say the same as the names.
    """

    name: str
    role: Role
    values: tuple[str, ...]
    why: str
    said: bool = False
    confirmed: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """Its different texts, numbers in their order."""
        return tuple(sorted(set(self.values), key=_rank))


def _rank(text: str) -> tuple[int, int, str]:
    return (0, int(text), "") if text.isdecimal() else (1, 0, text)


def parts_of(columns: Sequence[Column], files: Sequence[SeenFile]) -> list[Part]:
    """Give each column of the names a role; the first that tells platforms apart is the factor."""
    platform = _platform_of(columns)
    parts: list[Part] = []
    names: set[str] = set()
    for n, column in enumerate(columns):
        name, role, why = _role(column, files)
        name = name or f"part{n + 1}"
        if n == platform:
            name, role, why = "platform", Role.FACTOR, "its texts name platforms"
        elif any(_same(column.values, other.values) for other in parts):
            role, why = Role.IGNORED, "it changes only together with another part"
        while name in names:
            name = f"{name}{n + 1}"
        names.add(name)
        parts.append(Part(name, role, column.values, why, confirmed=why.startswith(_CONFIRMED)))
    if platform is None and (chosen := _factor_without_names(parts, files)) is not None:
        old = parts[chosen]
        parts[chosen] = Part("variant", Role.FACTOR, old.values, UNNAMED)
    return parts


def names_platform(text: str) -> bool:
    """Whether a text names something that a database runs on or in."""
    return _PLATFORM.search(re.sub(r"[_.]", " ", text)) is not None


def _platform_of(columns: Sequence[Column]) -> int | None:
    shares = [
        sum(names_platform(text) for text in set(column.values)) / len(set(column.values)) for column in columns
    ]
    best = max(range(len(columns)), key=lambda n: shares[n], default=None)
    return best if best is not None and shares[best] > 0 and len(set(columns[best].values)) > 1 else None


def _factor_without_names(parts: Sequence[Part], files: Sequence[SeenFile]) -> int | None:
    """The text with the fewest levels, or else the number, among what does not describe the load, if any."""
    conditions = [n for n, part in enumerate(parts) if part.role is Role.CONDITION]
    candidates = [
        n for n in conditions if not parts[n].confirmed and not _describes_load(parts[n], files)
    ] or conditions
    numbers = {n: all(text.isdecimal() for text in parts[n].texts) for n in candidates}
    return min(candidates, key=lambda n: (numbers[n], len(parts[n].texts)), default=None)


def _describes_load(part: Part, files: Sequence[SeenFile]) -> bool:
    """Whether something that the reports say follows from a part, as the script does from `readonly`."""
    for name in _said_names(files):
        of_text: dict[str, set[str]] = defaultdict(set)
        for text, file in zip(part.values, files, strict=True):
            of_text[text] |= {report.says.get(name, UNSAID) for report in file.good}
        alike = all(len(each) <= 1 for each in of_text.values())
        if name not in _NEVER and alike and len(set().union(*of_text.values())) > 1:
            return True
    return False


def _role(column: Column, files: Sequence[SeenFile]) -> tuple[str, Role, str]:
    serial = (
        column.numeric and len(set(column.values)) == len(column.values) and min(map(len, column.values)) >= _SERIAL
    )
    if serial or any(_DATE.fullmatch(value) for value in column.values):
        return "time", Role.IGNORED, "a date, time or number of one file alone"
    for name in _said_names(files):
        if all(_says(file, name, value) for file, value in zip(files, column.values, strict=True)):
            return name, Role.CONDITION, f"{_CONFIRMED} {name}"
    if column.numeric:
        numbers = {int(value) for value in column.values}
        if _REPETITION.match(column.beside):
            return "repetition", Role.REPETITION, f"a number after {column.beside!r}"
        if not column.beside and min(numbers) <= 1 and numbers == set(range(min(numbers), max(numbers) + 1)):
            return "repetition", Role.REPETITION, f"it counts from {min(numbers)} to {max(numbers)}"
    return (column.beside if re.fullmatch(r"[a-z]{3,20}", column.beside) else "part1"), Role.CONDITION, "it differs"


def _said_names(files: Sequence[SeenFile]) -> list[str]:
    return list(dict.fromkeys(name for file in files for report in file.good for name in report.says))


def _says(file: SeenFile, name: str, value: str) -> bool:
    """Whether all good reports of a file say this; a file without a good report does not contradict."""
    texts = {report.says.get(name, "") for report in file.good}
    number = value.isdecimal()
    return all(each == value or (number and each.isdecimal() and int(each) == int(value)) for each in texts)


def _same(values: Sequence[str], others: Sequence[str]) -> bool:
    """Whether each text of one goes with one of the other."""
    pairs = len(set(zip(values, others, strict=True)))
    return pairs == len(set(values)) == len(set(others))


def said_parts(files: Sequence[SeenFile], arms: Sequence[str], known: Mapping[str, Part]) -> list[Part]:
    """What reports say that differs within an arm, and that no name has. `arms`: arm of each file."""
    parts = []
    for name in _said_names(files):
        values = [report.says.get(name, UNSAID) for file in files for report in file.good]
        by_arm: dict[str, set[str]] = defaultdict(set)
        for file, arm in zip(files, arms, strict=True):
            by_arm[arm] |= {report.says.get(name, UNSAID) for report in file.good}
        differs = any(len(each) > 1 for each in by_arm.values())
        if differs and name not in {*known, *_NEVER}:
            parts.append(Part(name, Role.CONDITION, tuple(values), "the reports say it", said=True))
    return parts


def needed(said: Sequence[Part], places: Sequence[tuple[str, ...]]) -> list[Part]:
    """Parts that tell configurations apart, without those that follow from the others. `places`: rest of each."""
    kept = list(said)
    for part in reversed(said):
        others = [each for each in kept if each is not part]
        if len(set(_configurations(others, places))) == len(set(_configurations(kept, places))):
            kept = others
    return kept


def _configurations(parts: Sequence[Part], places: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [(*place, *(part.values[n] for part in parts)) for n, place in enumerate(places)]


def nested(part: Part, arms: Sequence[str]) -> bool:
    """Whether no text of a part occurs in two arms: runs that differ in it cannot be paired."""
    of_text: dict[str, set[str]] = defaultdict(set)
    for text, arm in zip(part.values, arms, strict=True):
        of_text[text].add(arm)
    return len(set(arms)) > 1 and all(len(each) == 1 for each in of_text.values())


def baseline_of(texts: Sequence[str]) -> tuple[str, bool]:
    """The text that is most likely the baseline, and whether its name says so."""
    named = [text for text in texts if _BASELINE.search(re.sub(r"[_.]", " ", text))]
    return (named[0], True) if named else (texts[0], False)


def repeated(places: Sequence[tuple[str, ...]]) -> int:
    """How often the most frequent configuration occurs."""
    return max(Counter(places).values(), default=0)
