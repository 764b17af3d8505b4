"""Kernels that show less: the running tare-probe says what it lacks, and tare what is still told.

Root hides files from itself in a mount namespace, or becomes a user without any right. The one setting of the whole
kernel, `perf_event_paranoid`, is raised for a moment and put back; root does not notice it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tare.analyze.explain.components import components
from tare.analyze.explain.sampled import sampled
from tare.doctor import Line, Verdict
from tare.doctor.sampling import sampling_lines
from tare.monitors import MonitorContext, why_unavailable
from tare.monitors.profile.profile import Profile
from tare.monitors.profile.stacks import PROFILE, read_profile
from tare.record.load_time import Span
from tare.sites import Completed
from tare.sites.binaries import PROBE, find
from tare.sites.local import LocalHost

pytestmark = pytest.mark.root

PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
NOBODY = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs", "--inh-caps=-all")
NO_BTF = "mount -t tmpfs none /sys/kernel/btf"
NO_SYMBOLS = "mount --bind /dev/null /proc/kallsyms"


class Behind(LocalHost):
    """This machine, but that every program is started by another."""

    def __init__(self, *before: str) -> None:
        super().__init__()
        self.before = before

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        return super().run([*self.before, *argv], timeout_s=timeout_s, stdin=stdin, env=env, check=check)


def hiding(mount: str) -> Behind:
    return Behind("unshare", "--mount", "--propagation", "private", "sh", "-c", f'{mount} && exec "$@"', "sh")


def seen(host: LocalHost) -> dict[str, Line]:
    return {line.name: line for line in sampling_lines(host)}


@pytest.fixture
def paranoid_4() -> Iterator[None]:
    """Never left raised: what it was is put back whatever happens in between."""
    before = PARANOID.read_text()
    try:
        PARANOID.write_text("4\n")
        yield
    finally:
        PARANOID.write_text(before)


@pytest.fixture
def nobody() -> Behind:
    binary = find(LocalHost(), PROBE)
    reachable = subprocess.run([*NOBODY, str(binary), "--version"], capture_output=True, check=False, timeout=60)
    if reachable.returncode:
        pytest.skip(f"a user without rights cannot start {binary}, which lies below a directory of root's")
    return Behind(*NOBODY)


def test_without_btf_only_block_requests_are_lacking() -> None:
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("this kernel has no BTF anyway")
    assert seen(LocalHost())["block requests"].verdict is Verdict.OK
    lines = seen(hiding(NO_BTF))
    assert lines["stacks"].verdict is Verdict.OK
    assert lines["kernel functions"].verdict is Verdict.OK
    assert lines["block requests"].verdict is Verdict.WARNING
    assert "this kernel has no BTF at /sys/kernel/btf/vmlinux" in lines["block requests"].found
    assert "the SUT's bytes then come from its control group" in (lines["block requests"].advice or "")


def test_without_symbols_stacks_are_sampled_and_the_kernel_is_told_as_a_whole(tmp_path: Path) -> None:
    lines = seen(hiding(NO_SYMBOLS))
    assert lines["stacks"].verdict is Verdict.OK
    assert lines["kernel functions"].verdict is Verdict.WARNING
    assert "/proc/kallsyms hides its addresses" in lines["kernel functions"].found
    assert "the kernel as a whole" in (lines["kernel functions"].advice or "")
    host, binary = hiding(NO_SYMBOLS), find(LocalHost(), PROBE)
    host.run([str(binary), "profile", "--out", str(tmp_path / PROFILE), "--duration", "0.3"], timeout_s=60)
    values = Profile().read(MonitorContext(host, str(tmp_path), 1.0, 1.0, (), {}), tmp_path).values
    assert "/proc/kallsyms hides" in str(values["kernel_symbols_missing"])
    profile = read_profile(tmp_path / PROFILE)
    whole = Span(profile.facts.began_ns / 1e9, profile.facts.ended_ns / 1e9)
    assert sampled(profile, whole, components()).without_symbols == values["kernel_symbols_missing"]


def test_a_user_without_rights_is_told_what_the_kernel_refuses(nobody: Behind) -> None:
    if int(PARANOID.read_text()) <= 0:
        pytest.skip("this kernel lets everybody sample all CPUs")
    lines = seen(nobody)
    assert lines["stacks"].verdict is Verdict.WARNING
    assert "cannot be sampled" in lines["stacks"].found
    assert "CPU time by side" in (lines["stacks"].advice or "")
    assert lines["block requests"].verdict is Verdict.WARNING
    assert "not permitted" in lines["block requests"].found


@pytest.mark.usefixtures("paranoid_4")
def test_paranoid_4_stops_users_and_not_root(nobody: Behind) -> None:
    assert seen(LocalHost())["stacks"].verdict is Verdict.OK
    assert "kernel.perf_event_paranoid is 4" in seen(nobody)["stacks"].found
    why = why_unavailable(Profile(), nobody, 1.0, {}) or ""
    assert "kernel.perf_event_paranoid is 4, so only root may sample" in why
    assert why_unavailable(Profile(), LocalHost(), 1.0, {}) is None


def test_nothing_is_left_of_the_looking(tmp_path: Path) -> None:
    host = Behind("env", f"TMPDIR={tmp_path}")
    assert seen(host)["stacks"].verdict is Verdict.OK
    assert list(tmp_path.iterdir()) == []
