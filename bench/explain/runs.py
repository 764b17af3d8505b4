"""One run of a case: the load driven, stacks and counters sampled meanwhile, and what an operation took."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.explain.cases import Load, process
from bench.explain.place import GROUP, Place
from tare.analyze.explain.components import components
from tare.analyze.explain.run_times import RunTimes, times_of
from tare.analyze.explain.sampled import sampled
from tare.analyze.explain.waiting import waited
from tare.monitors.profile.stacks import read_profile
from tare.record.load_time import Span

_RUN_S, _START_S = 120.0, 20.0


@dataclass(frozen=True)
class Measured:
    """One run. `profile_bytes`: `None` where no stacks were sampled."""

    times: RunTimes
    seconds: float
    per_s: float
    profile_bytes: int | None


def probe() -> str:
    """The installed tare-probe."""
    program = shutil.which("tare-probe", path=sysconfig.get_path("scripts"))
    if program is None:
        raise RuntimeError("tare-probe is missing; `make setup` builds it")
    return program


def measure(place: Place, load: Load, *, sampling: bool = True) -> Measured:
    """The client waits in a shell until all that watches is at work, so that its process is known to them."""
    where = place.scratch / "run"
    where.mkdir()
    waiting = ["sh", "-c", 'read _; exec "$@"', "sh", *load.client]
    client = subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with ExitStack() as stack:
            if sampling:
                stack.enter_context(process(_profile(where, load, client.pid)))
                _until(where / "profile.parquet.part")
            if load.in_group:
                record = [probe(), "record", "--out", str(where / "trace"), "--hz", "10", "--no-bpf"]
                stack.enter_context(process([*record, "--cgroup", f"sut=/{GROUP}"]))
                _until(where / "trace" / "journal.tare")
                time.sleep(0.3)
            began = time.monotonic()
            client.communicate(b"\n", timeout=_RUN_S)
            phase = Span(began, time.monotonic())
            if client.returncode != 0:
                raise RuntimeError(f"{load.client} ended with {client.returncode}")
            if load.in_group:
                time.sleep(0.3)
        return _measured(where, load, phase, sampling=sampling)
    finally:
        if client.poll() is None:
            client.kill()
            client.wait(timeout=10)
        shutil.rmtree(where)


def _profile(where: Path, load: Load, client: int) -> list[str]:
    named = {"sut": load.server or client, "client": client if load.server else None, "proxy": load.proxy}
    targets = [word for name, pid in named.items() if pid for word in ("--pid", f"{name}={pid}")]
    return [probe(), "profile", "--out", str(where / "profile.parquet"), *targets]


def _measured(where: Path, load: Load, phase: Span, *, sampling: bool) -> Measured:
    seconds, file = phase.ended_s - phase.began_s, where / "profile.parquet"
    profile = sampled(read_profile(file), phase, components()) if sampling else None
    waits = waited(where / "trace", phase) if load.in_group else {}
    return Measured(
        times=times_of(load.operations, phase, profile, waits),
        seconds=seconds,
        per_s=load.operations / seconds,
        profile_bytes=file.stat().st_size if sampling else None,
    )


def _until(path: Path) -> None:
    deadline = time.monotonic() + _START_S
    while not path.exists():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{path.name} did not come: tare-probe is not at work")
        time.sleep(0.02)
