"""Requirements: what a host must have or be able to do, declared once by the plug-in that needs it.

`tare plan` and `tare run` ask those of the plan and name each that is missing; `tare doctor` asks all that are
installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tare.sites import Host
from tare.sites.layout import Layout
from tare.study.model import ArmSettings, Placement, Study

if TYPE_CHECKING:
    from docker import DockerClient

    from tare.sites.engines import Engines

_CALL_S = 30.0
_NAMED_ARMS = 4


@dataclass(frozen=True)
class Use:
    """What one arm places on a host. `settings`: of the arm, if this is its server; `None` if it is its client."""

    arm: str
    placement: Placement
    settings: ArmSettings | None = None


@dataclass(frozen=True)
class HostPlan:
    """A host, and what a plan places there: what requirements are asked about."""

    host: Host
    layout: Layout | None = None
    """TARE_HOME on the host; `None`: not looked at."""
    uses: tuple[Use, ...] = ()
    """Empty without a plan: whatever an arm could want is asked about."""
    study: Study | None = None
    engine: DockerClient | None = None
    """The host's default engine."""
    no_engine: str | None = None
    """Why the default engine does not answer."""
    engines: Engines | None = None
    """Engines that arms select by name; `None` where none can be selected so."""
    in_sites: bool = False
    """Whether the host is one of several in sites.yaml; otherwise it is the machine that tare runs on."""
    address: str | None = None
    """Address at which the site's other hosts reach it."""
    data_bytes: float | None = None
    """Size of the data that the plan loads there; `None`: unknown."""
    options: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """Options of the monitor that is asked about."""

    @cached_property
    def is_root(self) -> bool:
        """Whether tare is root on the host."""
        return self.host.run(["id", "-u"], timeout_s=_CALL_S).text.strip() == "0"

    @property
    def placements(self) -> tuple[Placement, ...]:
        """Placements of all uses."""
        return tuple(use.placement for use in self.uses)

    @property
    def served(self) -> tuple[ArmSettings, ...]:
        """Settings of the arms whose server is placed there."""
        return tuple(use.settings for use in self.uses if use.settings is not None)


@dataclass(frozen=True)
class Lack:
    """Why a requirement is not met. `hint`: what to do, if `why` does not say it."""

    why: str
    hint: str | None = None

    def __str__(self) -> str:
        return self.why if self.hint is None else f"{self.why}; {self.hint}"


@dataclass(frozen=True, eq=False)
class Requirement:
    """Something that a host must have. Two requirements are the same only if they are one object."""

    name: str
    """What must be there, as plans and `tare doctor` name it."""
    needed_by: str
    """Who needs it: "the storage `nfs`"."""
    tried_how: str
    """How it is found out, without starting or changing anything that stays."""
    hint: str
    """What to do where it is missing."""
    ask: Callable[[HostPlan], Iterable[Lack]]
    """Yield each lack of a host; nothing if all is there, or nothing is known against it."""
    essential: bool = False
    """Whether no study can run without it."""
    between_hosts: bool = False
    """Whether only hosts of sites.yaml are asked for it."""

    def why_not(self, there: HostPlan) -> str | None:
        """Return the first lack in words; `None` if there is none."""
        return next((str(lack) for lack in self.ask(there)), None)

    def blockers(self, there: HostPlan, arms: int) -> Iterator[str]:
        """Yield a sentence for each lack, with the arms that need it. `arms`: number of arms in all."""
        if self.between_hosts and not there.in_sites:
            return
        of = some_of(tuple(dict.fromkeys(use.arm for use in there.uses)), arms)
        for lack in self.ask(there):
            yield f"{self.name}, needed by {self.needed_by} ({of}): {lack}"


def some_of(arms: tuple[str, ...], of: int) -> str:
    """Name the first few arms and their total."""
    if len(arms) == of > _NAMED_ARMS:
        return f"all {of} arms"
    if len(arms) > _NAMED_ARMS:
        return f"{len(arms)} of {of} arms: {', '.join(arms[:_NAMED_ARMS])} and {len(arms) - _NAMED_ARMS} more"
    return f"arms: {', '.join(arms)}"
