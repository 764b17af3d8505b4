"""The page of machines that tare was tried on, from the trials of `python -m tools.machines test`. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

HEAD = """\
# Tested on

`make test-machines` writes this page. Each row is what one machine showed. The machines are Debian as user-mode
Linux with two CPUs; they have no perf events, no BTF and no KVM. What is not listed was not tried. `study` compares
engines or network paths, `storages` each storage with limits for memory and disk; `dockerd NAME` has that setting
of dockerd. `resume` goes on after `kill -9`.

| distribution | kernel | systemd | cgroups | Python | account | tried | engine | result | date |
|---|---|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Seen:
    """One trial on one machine. `tried`: the command, or the arm of a study. `engine`: with its version."""

    distribution: str
    kernel: str
    systemd: str
    cgroups: str
    python: str
    account: str
    tried: str
    engine: str
    result: str
    date: str

    @property
    def what(self) -> tuple[str, ...]:
        """What a later trial of the same replaces."""
        return (self.distribution, self.account, self.tried)


def engine_of(arm: str, versions: Mapping[str, str]) -> str:
    """The engine of an arm of the studies, with its version: `rootless` → `Podman 5.4.2, crun 1.21`."""
    kind = arm.partition("-")[0]
    if kind in ("podman", "rootless"):
        return f"Podman {versions['podman']}, crun {versions['crun']}"
    if kind == "containerd":
        return f"containerd {versions['containerd']}"
    return "none" if kind == "bare" else f"Docker {versions['docker']}"


def merged(kept: Iterable[Seen], new: Iterable[Seen]) -> list[Seen]:
    """All trials, sorted; of the same trial the new one."""
    by_what = {each.what: each for each in (*kept, *new)}
    return [by_what[what] for what in sorted(by_what)]


def page(seen: Iterable[Seen]) -> str:
    """The page in Markdown."""
    rows = (" | ".join(word.replace("|", "\\|") or "none" for word in asdict(each).values()) for each in seen)
    return HEAD + "".join(f"| {row} |\n" for row in rows)


def parse(lines: str) -> list[Seen]:
    """Trials from a file with one JSON object a line."""
    return [Seen(**json.loads(line)) for line in lines.splitlines() if line]


def text(seen: Iterable[Seen]) -> str:
    """The file that `parse` reads."""
    return "".join(json.dumps(asdict(each)) + "\n" for each in seen)
