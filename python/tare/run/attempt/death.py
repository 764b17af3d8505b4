"""Why a server ended: one line, which is what a user reads first."""

from __future__ import annotations

import re
import signal
from contextlib import suppress

from tare.deployments import Deployment, Instance
from tare.deployments.vm.guest import guest_end
from tare.errors import EngineSilent, PodLost, RunFailed, TareError
from tare.sites import Host, Output
from tare.sites.process import boot_id
from tare.sites.reading import ending

OUT_OF_MEMORY = "out of memory"
"""Words by which every such reason can be known."""
_KILLED = int(signal.SIGKILL)
_SHELL_BASE = 128
_ASK_S = 5.0
_MACHINE_S = 60.0
"""Time between the end of a task in a virtual machine and the end of the machine: output is copied to the host,
disks are released, the machine powers off."""
_LAST_LINES, _LONGEST_OUTPUT = 3, 500
_NO_REASON = re.compile(r"at |.*\bVM warning: |\S+ \d+ \[(?:System|Note)\]|.*\[MY-(?:010119|013236)\]")
"""Lines that are no reason: Java stack frames, JVM warnings about options, MySQL's messages of normal operation,
its `Aborting` and its remark that the data directory is unusable."""

_CRASH = re.compile(
    r"^# (?:A fatal error has been detected by|There is insufficient memory for) the Java Runtime Environment.*\n"
    r"(?:#\n)?# +(.+)$",
    re.MULTILINE,
)
"""The JVM's report of its own crash, above a dozen lines on where to report it."""


def oom_kills(host: Host) -> int | None:
    """Return how many processes the kernel has killed for lack of memory since boot, by any limit.

    `oom_kill` of /proc/vmstat (include/linux/vm_event_item.h) counts for the whole machine: the counter of a
    control group is gone together with its container.
    """
    raw = host.read("/proc/vmstat") or b""
    return next((int(line.split()[1]) for line in raw.splitlines() if line.startswith(b"oom_kill ")), None)


def death_of(host: Host, deployment: Deployment, instance: Instance, oom_kills_before: int | None) -> str:
    """Describe how the instance's first process ended: `the server was killed by SIGSEGV`."""
    if (booted := boot_id(host)) and booted != instance.process.boot_id:
        return f"{host.name} rebooted, which ended the server"
    try:
        code = deployment.wait(instance, _ASK_S if instance.guest is None else _MACHINE_S)
    except TareError as error:
        return _unknown_death(host, instance, error, oom_kills_before)
    number = -code if code < 0 else code - _SHELL_BASE if code > _SHELL_BASE else 0
    if number == _KILLED and _oom_killed(host, oom_kills_before):
        return f"the kernel killed the server, {OUT_OF_MEMORY} ({limit_of(instance)})"
    if number == _KILLED and _kills_inside(host, instance):
        return f"the virtual machine's kernel killed the server, {OUT_OF_MEMORY} ({limit_of(instance)})"
    with suppress(ValueError):
        if number:
            return f"the server was ended by {signal.Signals(number).name}"
    return f"the server ended with exit code {code}"


def must_not_be_killed(host: Host, instance: Instance, code: int, oom_kills_before: int | None) -> None:
    """Raise `RunFailed` if a client was ended by SIGKILL, which its output cannot show."""
    if code not in (-_KILLED, _SHELL_BASE + _KILLED):
        return
    if _oom_killed(host, oom_kills_before):
        raise RunFailed(
            f"the kernel killed the client {instance.task.name}, {OUT_OF_MEMORY} ({limit_of(instance)})"
        )
    raise RunFailed(f"the client {instance.task.name} was ended by SIGKILL")


def _unknown_death(host: Host, instance: Instance, error: TareError, oom_kills_before: int | None) -> str:
    """Describe an end of unknown cause: the engine does not answer, or the machine ended first."""
    if instance.guest is None:
        if isinstance(error, PodLost):
            return error.what
        return f"{error.what}, and the server ended" if isinstance(error, EngineSilent) else "the server ended"
    if _oom_killed(host, oom_kills_before):
        return f"the kernel killed a process, {OUT_OF_MEMORY}, and {error.what}"
    return error.what


def _kills_inside(host: Host, instance: Instance) -> int | None:
    """Return the OOM kills inside a virtual machine when its task ended."""
    end = None if instance.guest is None else guest_end(host, instance.guest.status)
    return None if end is None else end.oom_kills


def _oom_killed(host: Host, before: int | None) -> bool:
    now = oom_kills(host)
    return now is not None and before is not None and now > before


def limit_of(instance: Instance) -> str:
    """Describe a task's memory limit."""
    limit = instance.task.limits.memory_bytes
    return "it has no memory limit" if limit is None else f"its limit is {limit / (1 << 20):.0f} MiB"


def last_output(host: Host, output: Output) -> str:
    """Return a program's last lines as one line: the cause often stands before a mere "aborting"."""
    texts = [ending(host, path).decode(errors="replace") for path in (output.stderr, output.stdout)]
    for text in texts:
        if crash := _CRASH.search(text):
            return crash.group(1).strip()[-_LONGEST_OUTPUT:]
    for text in texts:
        lines = [line.strip() for line in text.splitlines()]
        if reasons := [line for line in lines if line and not _NO_REASON.match(line)]:
            return " / ".join(reasons[-_LAST_LINES:])[-_LONGEST_OUTPUT:]
    return "it wrote nothing"
