"""`tools/chaos`: what must be said of a failed attempt, how counts add up, and what is left or touched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from tare.errors import EnvironmentLacks
from tare.sites.layout import Layout
from tools import hosts
from tools.chaos import __main__ as chaos
from tools.chaos.canaries import Canaries, differences, own_mounts
from tools.chaos.disks import Disk
from tools.chaos.faults import FAULTS, POWER_CUT, output_of, without_cpu_s
from tools.chaos.ground import Here, _bring_kernel, on_test_host
from tools.chaos.pair import faults_of
from tools.chaos.processes import below, part_of
from tools.chaos.real_faults import REAL
from tools.chaos.reasons import REASONS, wrong
from tools.chaos.session import Played, Session, inner_pid
from tools.chaos.tally import BrokenOff, Tally, merged
from tools.chaos.trial import processes_left
from tools.lab import HostsFailed

HARMLESS = {
    "kill -9 tare",
    "SIGTERM of tare",
    "a second tare",
    "another home's tare",
    "another user's tare",
    POWER_CUT,
    "connections ended",
    "network silent",
}
"""After these no attempt may be kept as failed."""


def played(kind: str, at: float = 100.0, until: float = 101.0) -> Played:
    return Played(kind, "measure", at, until)


def test_each_fault_has_words_for_what_it_does_or_may_fail_nothing() -> None:
    assert set(REASONS) == {*FAULTS, *REAL, *faults_of(())} - HARMLESS


@pytest.mark.parametrize(
    ("reason", "kind", "why"),
    [
        ("the server was ended by SIGKILL during measure; its last output: x", "kill -9 server", None),
        ("bare, which ran at the same time, failed: the server was ended by SIGKILL", "kill -9 server", None),
        ("tare-load printed nothing", "kill -9 client", "does not name kill -9 client first"),
        (f"it went wrong {'x' * 300} SIGKILL", "kill -9 server", "does not name"),
        ("the server was ended by SIGKILL", "a second tare", "does not name"),
        ("RuntimeError: can't start new thread", "no more processes", "nobody has foreseen"),
        ("", "kill -9 server", "no reason"),
        ("one\ntwo", "kill -9 server", "no reason"),
    ],
)
def test_a_reason_must_name_the_fault_first(reason: str, kind: str, why: str | None) -> None:
    complaint = wrong(reason, 90.0, 105.0, [played(kind)])
    assert complaint is None if why is None else why in (complaint or "")


@pytest.mark.parametrize("kind", ["SIGSTOP of server", "bridge down", "wire removed"])
@pytest.mark.parametrize(
    "reason",
    [
        "the server did not answer in the 3 s of the measure phase: it sent no answer",
        "the server did not answer in the measure phase: no transaction in 6 s",
        "YCSB reports no operation: the server did not answer",
        "the server did not answer in any complete window of one half of the duet",
    ],
)
def test_a_server_that_was_silent_is_told_in_words_that_explain_it(kind: str, reason: str) -> None:
    assert wrong(reason, 90.0, 105.0, [played(kind)]) is None


def test_a_fault_explains_only_attempts_that_it_came_into() -> None:
    reason = "the server was ended by SIGKILL"
    assert wrong(reason, 200.0, 205.0, [played("kill -9 server")]) == "no fault came into it"
    assert wrong(reason, 90.0, 95.0, [played("kill -9 server")]) == "no fault came into it"
    assert wrong(reason, 110.0, 115.0, [played("kill -9 server")]) is None
    assert wrong(reason, 0.0, 1.0, [played("kill -9 server"), played("clock of tare's stepped by 1 h")]) is None


def test_a_second_tare_that_hangs_is_a_violation_and_one_without_a_cpu_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(within_s: float, waited_s: float, *, may_end: bool = False) -> bytes:
        """`may_end`: once its first `within_s` are over; else it hangs."""
        reading, writing = os.pipe()

        def waited(_: int) -> float:
            if may_end:
                os.write(writing, b"\n")
            return waited_s

        monkeypatch.setattr("tools.chaos.faults.without_cpu_s", waited)
        command = ["sh", "-c", "read line; echo over >&2"]
        with (
            os.fdopen(reading) as words,
            os.fdopen(writing),
            subprocess.Popen(command, stdin=words, stderr=subprocess.PIPE) as beside,
        ):
            try:
                return output_of(beside, beside.pid, within_s)
            finally:
                beside.kill()

    with pytest.raises(AssertionError, match=r"did not end within 0\.2 s in which it had a CPU"):
        run(0.2, 0.0)
    assert run(3.0, 3.0, may_end=True) == b"over\n"
    with pytest.raises(BrokenOff, match="too busy: a second tare waited 1 s for a CPU"):
        run(0.2, 0.7)


def test_time_without_a_cpu_is_read_from_the_kernel() -> None:
    assert 0.0 < without_cpu_s(os.getpid()) < time.monotonic()
    assert without_cpu_s(2**22 + 1) == 0.0


def test_a_test_host_gets_the_kernel_of_virtual_machines_without_the_result_of_a_trial_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetched(_host: object, _ledger: object, layout: Layout) -> None:
        (layout.machines / "kernel").mkdir(parents=True)
        (layout.machines / "kernel" / "vmlinuz").write_bytes(b"kernel")
        (layout.machines / "accelerator.json").write_text("{}")

    monkeypatch.setattr("tools.chaos.ground.kernel_of", fetched)
    (tmp_path / "to").mkdir()
    _bring_kernel(tmp_path / "home", tmp_path / "to")
    brought = {path.relative_to(tmp_path / "to") for path in (tmp_path / "to").rglob("*") if path.is_file()}
    assert brought == {Path(".tare"), Path("machines/kernel/vmlinuz")}


def test_a_call_without_a_kernel_for_virtual_machines_says_why_it_cannot_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise EnvironmentLacks("apt knows no package", hint="apt-get update")

    monkeypatch.setattr("tools.chaos.ground.kernel_of", refused)
    with pytest.raises(BrokenOff, match="no kernel for virtual machines: apt knows no package"):
        _bring_kernel(tmp_path, tmp_path)


def test_counts_of_several_calls_add_up(tmp_path: Path) -> None:
    one = Tally(Counter({("kill -9 tare", "measure"): 2, ("bridge down", "between runs"): 1}), seeds=["redis 1"])
    other = Tally(
        Counter({("kill -9 tare", "load"): 3}), violations=["lost"], seeds=["redis 2"], attempts=4, stores=1
    )
    for number, tally in enumerate((one, other)):
        (tmp_path / f"{number}").write_text(_json(tally))
    whole = merged([tmp_path / "0", tmp_path / "1"])
    assert (whole.faults, whole.kinds["kill -9 tare"], whole.seeds) == (6, 5, ["redis 1", "redis 2"])
    assert whole.table().splitlines() == [
        "| fault | load | measure | between | all |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| bridge down |  |  | 1 | 1 |",
        "| kill -9 tare | 3 | 2 |  | 5 |",
        "| all | 3 | 2 | 1 | 6 |",
        "",
        "6 faults, 1 violations, 4 attempts kept in 1 stores, 0 s.",
    ]


def _json(tally: Tally) -> str:

    return json.dumps(tally.tree())


def test_what_came_or_went_is_told() -> None:
    before = {"mount": Counter({"/a": 1, "/b": 1})}
    assert differences(before, {"mount": Counter({"/a": 1, "/b": 1})}) == []
    assert differences(before, {"mount": Counter({"/a": 2})}) == ["mount left: /a", "mount gone: /b"]


def mountinfo(*points: str) -> str:
    return "".join(f"{n} 1 0:{n} / {point} rw - tmpfs tmpfs rw\n" for n, point in enumerate(points, start=20))


def test_a_mount_that_another_program_takes_away_is_no_violation_and_one_of_tares_is() -> None:
    place, pod = "/tmp/tare-chaos-x", "/var/lib/kubelet/pods/1/volumes/token"
    outside = ["/", "/proc", pod, f"{place}/disk"]
    inside = [*outside, "/proc", "/run/engine"]
    before = {"mount": own_mounts(Counter(inside), mountinfo(*outside), place)}
    assert before["mount"] == Counter({"/proc": 1, "/run/engine": 1, f"{place}/disk": 1})
    inside.remove(pod)
    outside.remove(pod)
    assert differences(before, {"mount": own_mounts(Counter(inside), mountinfo(*outside), place)}) == []
    inside = ["/", "/proc", "/proc", "/", "/tmp/tare-chaos-other/disk", "/run/netns/tare-1"]
    assert differences(before, {"mount": own_mounts(Counter(inside), mountinfo(*outside), place)}) == [
        "mount left: /",
        f"mount gone: {place}/disk",
        "mount gone: /run/engine",
    ]


def test_a_process_that_is_no_part_has_no_name() -> None:
    assert part_of(os.getpid()) is None
    assert inner_pid(os.getpid()) == os.getpid()
    assert os.getpid() in below(os.getppid())


def test_nothing_is_played_where_a_canary_is_missing_from_the_start(tmp_path: Path) -> None:
    with pytest.raises(BrokenOff, match=r"canaries are missing: volume, mount$"):
        Canaries(tmp_path / "c", lambda: {"container": "0 id", "volume": "1 ", "mount": "False", "file": "True"})
    there = Canaries(tmp_path / "c", lambda: {"container": "0 id", "mount": "True"})
    try:
        assert there.problems() == []
    finally:
        there.end()


@pytest.mark.parametrize("kind", REASONS)
def test_no_fault_explains_a_reason_that_says_nothing(kind: str) -> None:
    assert wrong("it went somehow", 90.0, 105.0, [played(kind)]) is not None


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("the client was ended by SIGKILL during measure", "kill -9 a process of tare's"),
        ("monitor probe ended during measure", "kill -9 a process of tare's"),
        ("sysbench did not end within 30 s", "SIGSTOP of a process of tare's"),
    ],
)
def test_what_a_process_of_tares_may_have_been_is_named(reason: str, kind: str) -> None:
    assert wrong(reason, 90.0, 105.0, [played(kind)]) is None


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (BrokenOff("the engine of tare-host-1\ndoes not answer"), "the engine of tare-host-1 does not answer"),
        (HostsFailed("its sshd does not let us in:\nrefused"), "its sshd does not let us in: refused"),
        (KeyboardInterrupt(), "the call was interrupted"),
    ],
    ids=["engine", "host", "interrupted"],
)
def test_a_call_that_cannot_go_on_prints_what_it_counted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    why: str,
) -> None:
    struck = iter((True, True))

    def fault(_session: Session) -> bool:
        if next(struck, False):
            return True
        raise error

    monkeypatch.setenv("DOCKER_HOST", "")  # which the call sets for itself
    monkeypatch.setattr(chaos, "FAULTS", {"a second tare": fault})
    code = chaos.main(["--faults", "20", "--seed", "3", "--json", str(tmp_path / "out.json")])
    printed = capsys.readouterr()
    counts = json.loads(printed.out)
    assert code == 1
    assert counts == json.loads((tmp_path / "out.json").read_text())
    assert sum(counts["cells"]["a second tare"].values()) == 2
    assert (counts["violations"], counts["broken_off"]) == (0, [why])
    assert f"chaos: {why}\n" in printed.err
    assert chaos.main(["--merge", str(tmp_path / "out.json")]) == 1
    assert "1 calls were broken off" in capsys.readouterr().out


def test_a_test_host_without_its_programs_says_what_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program, **_: None if program == "sshd" else f"/bin/{program}")
    with pytest.raises(HostsFailed, match=r"needs sshd: scripts/packages\.sh hosts"):
        hosts.up(1)


def test_a_call_without_what_canaries_are_made_of_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda program, **_: None if program == "nft" else f"/bin/{program}")
    with pytest.raises(BrokenOff, match="canaries need nft: "), on_test_host(tmp_path, ()):
        pass


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mkfs.ext4") is None, reason="root and mkfs.ext4 make a disk")
def test_a_disk_without_power_loses_what_nobody_synced_and_nothing_else(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "disk", 16, tmp_path / "below")
    try:
        disk.make()
        for name in ("kept", "lost"):
            (disk.place / name).write_bytes(b"x" * 8192)
        for path in (disk.place / "kept", disk.place):  # the name, too
            handle = os.open(path, os.O_RDONLY)
            os.fsync(handle)
            os.close(handle)
        (disk.place / "later").write_bytes(b"y")
        disk.lose_power()
        with pytest.raises(OSError, match="Input/output error"):
            (disk.place / "no more").write_bytes(b"z")
        disk.start_again()
        assert (disk.place / "kept").read_bytes() == b"x" * 8192
        assert not (disk.place / "later").exists()
        assert (disk.place / "lost").read_bytes() != b"x" * 8192
    finally:
        disk.remove()


def test_a_sleeper_of_a_fake_that_is_left_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.chaos.trial._SETTLED_S", 0.0)
    ground = Here(tmp_path)
    env = {**os.environ, "TARE_HOME": f"{tmp_path}/home"}
    with subprocess.Popen(["sleep", "3601.6"], env=env) as sleeper:
        assert processes_left(ground) == [f"process {sleeper.pid}: sleep 3601.6"]
        sleeper.kill()
    assert processes_left(ground) == []
