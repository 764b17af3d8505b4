"""Rules for the whole test session: engine tests run or are skipped for a reason, and nothing is left behind.

Where CI=true the machine is ours alone: nothing may be skipped for want of an engine, and *any* new container,
network, mount or network namespace fails the session. Elsewhere other work may come and go meanwhile, so only what
can be told to be this session's counts.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from tests import preloaded, running
from xdist.remote import Producer  # type: ignore[import-untyped]  # xdist has no types
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # as above

from tare.errors import EnvironmentLacks
from tare.sites.engine import connect
from tare.sites.layout import ENV, default_layout
from tare.sites.process import to_ident
from tare.sites.sqlite_ledger import SqliteLedger

ROOT = Path(__file__).resolve().parent.parent
CI = os.environ.get("CI") == "true"
SESSION = "TARE_TEST_SESSION"
ENGINES_OWN = frozenset({"/run/docker/netns/default"})
"""Made by dockerd for the first container on the host's network, and kept for all later ones."""
SETTLE_S = 10.0
"""How long the kernel and the engine may take to let go of what was already removed."""
SANDBOXES, SANDBOXES_SETTLE_S = "/run/docker/netns/", 90.0
"""Where dockerd names the network namespaces of containers; a name goes with its housekeeping, once in 60 s."""
BESIDE = {"integration": 5, "unit": 10}
"""Niceness of workers that run no test on the engine."""
TIMED = -10
"""Niceness of tests marked `timed`, where root may set it."""
BUILDS_IMAGES = "tests/integration/images/test_shipped_recipes.py"
NEEDS_IMAGES = (
    "tests/integration/databases/",
    "tests/integration/runs/",
    "tests/integration/images/test_images.py",
)
"""What on the engine comes last: the images are built in another worker meanwhile."""
MAKES_SIDECARS = "tests/integration/rights/"
BEFORE = pytest.StashKey["Traces"]()
HAD_ENGINE = pytest.StashKey[bool]()
LEFT = pytest.StashKey[str]()
NICENESS = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Tests use caches of their own and no cluster of the user's; what they start inherits the session's mark."""
    config.stash[NICENESS] = os.getpriority(os.PRIO_PROCESS, 0)
    os.environ.setdefault(ENV, str(ROOT / "build" / "test-home"))
    os.environ["KUBECONFIG"] = str(ROOT / "build" / "no-cluster")
    if _is_worker(config):
        config.args = _from_own_place(config.args, vars(config)["workerinput"])
    else:
        os.environ[SESSION] = str(os.getpid())
    # A version manager's `python3` is a shell script that takes 100 ms to find what runs these tests in 10.
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    # A slow machine is no wrong answer: what takes how long is told by benchmarks.
    hypothesis.settings.register_profile("tare", hypothesis.settings.get_profile("default"), deadline=None)
    if not CI:  # there hypothesis itself takes a profile without a deadline, and without chance
        hypothesis.settings.load_profile("tare")
    if not config.getoption("numprocesses", None):
        config.pluginmanager.register(running.EndsProcesses())
    # Whoever starts the tests in the background has it ignored, and some tests press Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _from_own_place(args: Sequence[str], worker: Mapping[str, Any]) -> list[str]:
    """The same as `args`, begun at a place of each worker's own: what one has compiled others find compiled.

    All have the same order of tests in the end (`pytest_collection_modifyitems`).
    """
    parts = [part for arg in args for part in (_parts(Path(arg)) if Path(arg).is_dir() else [arg])]
    first = len(parts) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    return [*parts[first:], *parts[:first]]


def _parts(folder: Path) -> list[str]:
    entries = [each for each in sorted(folder.iterdir()) if each.is_dir() or each.name.startswith("test_")]
    return [str(each) for each in entries if each.name[0] not in "._"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """All that is collected stays to the end, so garbage is neither looked for meanwhile nor in it afterwards."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are named by their parameter and length: what was made while collecting may hold the time, and the
    workers that share the tests must all find the same names."""
    return f"{argname}-{len(val)}-bytes" if isinstance(val, bytes) else None


def _why_no_engine() -> str | None:
    if os.geteuid() != 0:
        return "engine tests need root"
    try:
        connect(timeout_s=10).close()
    except EnvironmentLacks as error:
        return str(error)
    return None


def _why_not_root() -> str | None:
    return None if os.geteuid() == 0 else "only root can make what this test looks at"


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


class ByGroup(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives workers one group of tests after the other, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


@cache
def _source(path: str) -> str:
    return _text(ROOT / path) if path.startswith("tests/integration/") else ""


def group_of(nodeid: str) -> str:
    """Which tests run one after the other: those that share the engine, test hosts, sidecars, or a file.

    Test hosts take turns at being made anyway, and one test looks for those that another process abandoned.
    """
    path = nodeid.partition("::")[0]
    if "mark.engine" in _source(path) and "mark.apart" not in _source(path):
        return "engine"
    if "import hosts" in _source(path):
        return "test hosts"
    return MAKES_SIDECARS if path.startswith(MAKES_SIDECARS) else path


def _rank(path: str) -> int:
    """What takes longest first, and what needs an image of a recipe after others on the engine."""
    group, waits = group_of(path), path.startswith(NEEDS_IMAGES)
    if group == "engine":
        return 1 if waits else 0
    if path == BUILDS_IMAGES:
        return 2
    return 3 if "mark.apart" in _source(path) and not waits else 4 if waits or group == "test hosts" else 5


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests on the engine, some of which measure, come before whole programs, and these before unit tests.

    A test that times real processes would measure its neighbours: it comes first of all.
    """
    if not _is_worker(item.config):
        return
    path, niceness = item.nodeid.partition("::")[0], item.config.stash[NICENESS]
    if item.get_closest_marker("timed") is not None:
        niceness = TIMED
    elif "mark.engine" not in _source(path):
        niceness = max(niceness, BESIDE["integration" if path.startswith("tests/integration/") else "unit"])
    with suppress(PermissionError):  # only with CAP_SYS_NICE may a process come before others again
        os.setpriority(os.PRIO_PROCESS, 0, niceness)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Of `--dist loadscope`; xdist's own `loadgroup` finds no groups under pytest 9.2."""
    return ByGroup(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order groups, and skip engine tests and those of root where they cannot run; in CI they fail instead."""
    paths = {item: item.nodeid.partition("::")[0] for item in items}
    items.sort(key=lambda item: (_rank(paths[item]), paths[item]))
    running.shuffle(items, group_of)
    for marker, why_not in (("engine", _why_no_engine), ("root", _why_not_root)):
        wanted = [item for item in items if item.get_closest_marker(marker)]
        reason = why_not() if wanted else None
        if reason is None:
            continue
        if CI:
            raise pytest.UsageError(f"in CI every test marked {marker} must run: {reason}")
        for item in wanted:
            item.add_marker(pytest.mark.skip(reason=reason))


@dataclass(frozen=True)
class Traces:
    """What a session could leave behind, each as a set of descriptions."""

    containers: frozenset[str]
    networks: frozenset[str]
    volumes: frozenset[str]
    loops: frozenset[str]
    mounts: frozenset[str]
    cgroups: frozenset[str]
    namespaces: frozenset[str]
    tables: frozenset[str]
    processes: frozenset[str]
    ledger: frozenset[str]

    def beyond(self, before: Traces) -> list[str]:
        """What is here and was not before."""
        return [
            f"{field.name}: {what}"
            for field in fields(self)
            for what in sorted(getattr(self, field.name) - getattr(before, field.name))
        ]


def _of_engine() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """All containers, networks and volumes; elsewhere than in CI the ledger speaks for ours."""
    if not CI or _why_no_engine() is not None:
        return frozenset(), frozenset(), frozenset()
    client = connect(timeout_s=30)
    try:
        containers = client.containers.list(all=True, ignore_removed=True)
        networks = client.networks.list()
        volumes = client.volumes.list()
    finally:
        client.close()
    return (
        frozenset(f"{each.name} ({each.id})" for each in containers),
        frozenset(f"{each.name} ({each.id})" for each in networks),
        frozenset(str(each.name) for each in volumes),
    )


def _loops() -> frozenset[str]:
    """Loop devices that have a file, whoever mounted it; elsewhere than in CI the ledger speaks for ours."""
    backed = Path("/sys/block").glob("loop*/loop/backing_file") if CI else ()
    return frozenset(f"{path.parts[3]}: {_text(path).strip()}" for path in backed)


def _mounts() -> frozenset[str]:
    """Every mount point in CI, else those in the tests' home and in pytest's temporary directories."""
    points = (line.split()[4] for line in _text(Path("/proc/self/mountinfo")).splitlines())
    here = (str(default_layout().home), str(Path(tempfile.gettempdir()) / "pytest-of-"))
    return frozenset(point for point in points if (CI and point not in ENGINES_OWN) or point.startswith(here))


def _cgroups() -> frozenset[str]:
    """Control groups at and under `tare` or `tare.slice`; elsewhere than in CI the ledger speaks for ours."""
    if not CI:
        return frozenset()
    mounts = (line.split() for line in _text(Path("/proc/self/mounts")).splitlines())
    tops = (top for mount in mounts if mount[2] in ("cgroup", "cgroup2") for top in Path(mount[1]).glob("tare*/"))
    # Not by `rglob`, which passes on that a group went meanwhile: the probe's tests run beside these.
    return frozenset(path for top in tops for path, _, _ in os.walk(top))


def _namespaces() -> frozenset[str]:
    """Network namespaces that have a name; one without lives only as long as a process, which is seen itself."""
    if not CI:
        return frozenset()
    namespaces = (path for folder in ("/run/netns", "/run/docker/netns") for path in Path(folder).glob("*"))
    return frozenset(str(path) for path in namespaces) - ENGINES_OWN


def _tables() -> frozenset[str]:
    """Tables of nftables that bear tare's name: one with the rules of 10,000 Services slows every later run."""
    if not CI or os.geteuid() != 0 or shutil.which("nft") is None:
        return frozenset()
    listed = subprocess.run(["nft", "list", "tables"], check=False, capture_output=True, text=True, timeout=60)
    return frozenset(line for line in listed.stdout.splitlines() if " tare-" in line)


def _processes() -> frozenset[str]:
    """Processes with the session's mark in their environment, or in one of our control groups."""
    return frozenset(
        f"{pid} {_text(Path(f'/proc/{pid}/cmdline')).replace(chr(0), ' ')}"
        for pid in _pids()
        if pid != os.getpid() and _parent(pid) is not None and _marked(pid)
    )


def _marked(pid: int) -> bool:
    if f"{SESSION}={os.environ[SESSION]}" in _text(Path(f"/proc/{pid}/environ")).split("\0"):
        return True
    return CI and any(":/tare" in line for line in _text(Path(f"/proc/{pid}/cgroup")).splitlines())


def _parent(pid: int) -> int | None:
    """Parent of a process that still runs; `None` for one that is gone or waits to be reaped."""
    after_name = _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()
    return int(after_name[1]) if after_name and after_name[0] not in "ZX" else None


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _ledger() -> frozenset[str]:
    path = default_layout().ledger
    if not path.exists():
        return frozenset()
    entries = [entry for entry in SqliteLedger(path).entries() if not entry.keep]
    return frozenset(f"{entry.kind} {entry.ident}, made by {to_ident(entry.owner)}" for entry in entries)


def traces() -> Traces:
    """All that can be seen now."""
    containers, networks, volumes = _of_engine()
    return Traces(
        containers,
        networks,
        volumes,
        _loops(),
        _mounts(),
        _cgroups(),
        _namespaces(),
        _tables(),
        _processes(),
        _ledger(),
    )


def _patience(left: list[str]) -> float:
    only_sandboxes = all(what.startswith(f"namespaces: {SANDBOXES}") for what in left)
    return SANDBOXES_SETTLE_S if only_sandboxes else SETTLE_S


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Look at the machine before the first test; with workers, before they start."""
    if not _is_worker(session.config):
        terminal = session.config.pluginmanager.getplugin("terminalreporter")
        if terminal is not None:
            session.config.pluginmanager.register(running.Progress(terminal))
        session.config.stash[BEFORE] = traces()
        # Elsewhere than in CI the engine is not asked for traces, and another's may end at any time.
        session.config.stash[HAD_ENGINE] = CI and _why_no_engine() is None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the session when it leaves anything behind; with workers, after all of them have ended."""
    preloaded.close()
    if (left := _left_behind(session.config)) is not None:
        session.config.stash[LEFT] = left
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what was left behind."""
    if (left := config.stash.get(LEFT, None)) is not None:
        terminalreporter.section("left behind", red=True)
        terminalreporter.write_line(left)


def _left_behind(config: pytest.Config) -> str | None:
    before = config.stash.get(BEFORE, None)
    if before is None:
        return None
    if config.stash[HAD_ENGINE] and (reason := _why_no_engine()) is not None:
        return f"the tests lost the engine, so what they left in it cannot be seen: {reason}"
    began = time.monotonic()
    while (left := traces().beyond(before)) and time.monotonic() - began < _patience(left):
        time.sleep(0.5)
    return "\n".join(("the tests left behind:", *left)) if left else None
