"""The doctor: each finding has the right verdict, and every one that is not fine says what to do."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import docker
import pytest
from rich.console import Console
from typer.testing import CliRunner

from tare.cli import app
from tare.cli.machine.doctor import show
from tare.doctor import Line, Verdict
from tare.doctor.cpu import cpu_count_line, cpu_lines
from tare.doctor.engine import engine_lines
from tare.doctor.examination import examine
from tare.doctor.requirement_lines import Examined, requirement_lines
from tare.doctor.resources import GIB, disk_line, memory_line, resource_lines
from tare.doctor.spin import spin
from tare.doctor.trials import builder_line, kvm_line, noise_line
from tare.errors import EnvironmentLacks, RunFailed, TimedOut
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.requirements import HostPlan
from tare.requirements.resources import HOME
from tare.sites import Completed, Process
from tare.sites.facts import host_facts
from tare.sites.fake import Answer, FakeHost
from tare.sites.file import SshSpec
from tare.sites.layout import Layout
from tare.sites.ledger import Kind, Ledger, Made
from tare.sites.local import LocalHost

LAYOUT = Layout(Path("/home/t"))
GOOD_HOST = replace(
    host_facts(FakeHost()),
    cpu_count=4,
    cpu_model="Some CPU",
    cpu_governors=("performance",),
    cpu_turbo=False,
    cpu_smt="off",
    cpu_steal_fraction=0.0,
    clocksource="tsc",
    load_1min=0.05,
    memory_available_bytes=8 * GIB,
    data_free_bytes=100 * GIB,
    data_filesystem="ext4",
    swap_total_bytes=0,
    swap_used_bytes=0,
    thp="madvise",
    proactive_reclaim=(),
    cgroup_layout="v2",
    cgroup_controllers=("cpu", "cpuset", "io", "memory", "pids"),
    perf_event_paranoid=2,
)
GOOD_ENGINE = EngineFacts(
    engine="docker",
    engine_version="28.2.2",
    engine_api_version="1.50",
    engine_storage_driver="overlay2",
    engine_userland_proxy=True,
    engine_userland_proxy_from="default",
    engine_cgroup_version="2",
    engine_cgroup_driver="systemd",
    engine_rootless=False,
    engine_security=("name=seccomp,profile=builtin", "name=cgroupns"),
    engine_containers_running=0,
)
SPUN = {"seconds": 1.5, "pauses": 3, "lost_s": 0.001, "longest_ms": 0.4}


def by_name(lines: object) -> dict[str, Line]:
    return {line.name: line for line in cast("list[Line]", lines)}


def judged(name: str, **facts: Any) -> Line:
    changed = replace(GOOD_HOST, **facts)
    return by_name([*of_resources(changed), *cpu_lines(changed), *resource_lines(changed)])[name]


def of_resources(facts: HostFacts) -> list[Line]:
    return [cpu_count_line(facts), memory_line(facts), disk_line(facts)]


def host(**answers: Answer) -> FakeHost:
    """A machine on which everything that is tried works, but for what the test says."""
    works: dict[str, Answer] = {
        "id": Completed(("id",), 0, b"0\n"),
        "mmdebstrap": Completed(("mmdebstrap",), 0, b"mmdebstrap 1.3.5\n"),
        "kvm": Completed(("python3",), 0),
        "spin": Completed(("python3",), 0, json.dumps(SPUN).encode()),
        "ganesha": Completed(("ganesha.nfsd",), 0, b"NFS-Ganesha Release = V4.3\n"),
        **answers,
    }
    return FakeHost(
        answers={
            ("id",): works["id"],
            ("mmdebstrap",): works["mmdebstrap"],
            ("python3", "-I", "-c"): works["kvm"],
            ("python3", "-I", "-"): works["spin"],
            ("ganesha.nfsd",): works["ganesha"],
            # A fake has no namespace that could be waited for; tests of pods have one of their own.
            ("unshare",): RunFailed("unshare cannot be run"),
        },
        files={"/proc/filesystems": b"nodev\tnfs4\n"},
    )


def test_a_good_machine_gets_no_advice() -> None:
    lines = [
        *(builder_line(host()), kvm_line(host(), LAYOUT), noise_line(host())),
        *of_resources(GOOD_HOST),
        *cpu_lines(GOOD_HOST),
        *resource_lines(GOOD_HOST),
        *engine_lines(GOOD_ENGINE),
    ]
    assert [line for line in lines if line.verdict is not Verdict.OK or line.advice] == []


def test_whether_the_engine_s_filter_lets_a_server_use_io_uring() -> None:
    newer, older = (
        by_name(engine_lines(replace(GOOD_ENGINE, engine_version=version)))["engine's seccomp filter"].found
        for version in ("25.0.4", "20.10.24+dfsg1")
    )
    assert "forbids io_uring" in newer
    assert "allows io_uring" in older
    assert "mbind" in older
    for unknown in ({"engine": "podman"}, {"engine_security": ("name=seccomp,profile=/etc/own.json",)}):
        assert "engine's seccomp filter" not in by_name(engine_lines(replace(GOOD_ENGINE, **unknown)))


def test_images_are_not_built_on_other_hosts() -> None:
    there, ledger = HostPlan(host(), LAYOUT), cast("Ledger", OneLeft())
    assert "mmdebstrap" in by_name(requirement_lines(Examined(there, ledger, GOOD_HOST, None)))
    over_ssh = SshSpec(ssh="bench@db")
    assert "mmdebstrap" not in by_name(requirement_lines(Examined(there, ledger, GOOD_HOST, None, over_ssh)))


@pytest.mark.parametrize(
    ("name", "facts", "verdict"),
    [
        ("CPUs", {"cpu_count": 1}, Verdict.WARNING),
        ("CPUs", {"cpu_count": None}, Verdict.WARNING),
        ("CPU governor", {"cpu_governors": ["performance", "powersave"]}, Verdict.WARNING),
        ("CPU governor", {"cpu_governors": None}, Verdict.OK),
        ("CPU turbo", {"cpu_turbo": True}, Verdict.WARNING),
        ("CPU turbo", {"cpu_turbo": None}, Verdict.OK),
        ("CPU threads", {"cpu_smt": "on"}, Verdict.WARNING),
        ("CPU steal", {"cpu_steal_fraction": 0.05}, Verdict.WARNING),
        ("CPU steal", {"cpu_steal_fraction": None}, Verdict.WARNING),
        ("clock source", {"clocksource": "hpet"}, Verdict.WARNING),
        ("load of others", {"load_1min": 3.0}, Verdict.WARNING),
        ("memory", {"memory_available_bytes": GIB // 2}, Verdict.CANNOT),
        ("memory", {"memory_available_bytes": 2 * GIB}, Verdict.WARNING),
        ("memory", {"memory_available_bytes": None}, Verdict.WARNING),
        ("disk", {"data_free_bytes": GIB}, Verdict.CANNOT),
        ("disk", {"data_free_bytes": 10 * GIB}, Verdict.WARNING),
        ("swap", {"swap_total_bytes": GIB, "swap_used_bytes": 1}, Verdict.WARNING),
        ("swap", {"swap_total_bytes": GIB, "swap_used_bytes": 0}, Verdict.OK),
        ("huge pages", {"thp": "always"}, Verdict.WARNING),
        ("proactive reclaim", {"proactive_reclaim": ["kdamond 0", "damon_reclaim"]}, Verdict.WARNING),
        ("proactive reclaim", {"proactive_reclaim": None}, Verdict.OK),
        ("cgroups", {"cgroup_layout": None}, Verdict.CANNOT),
        ("cgroups", {"cgroup_controllers": ["cpu", "memory"]}, Verdict.CANNOT),
        ("performance counters", {"perf_event_paranoid": None}, Verdict.WARNING),
        ("surroundings", {"in_container": True}, Verdict.WARNING),
    ],
)
def test_a_fact_gets_its_verdict_and_advice_where_there_is_something_to_do(
    name: str, facts: Mapping[str, object], verdict: Verdict
) -> None:
    line = judged(name, **facts)
    assert line.verdict is verdict
    assert (line.advice is None) == (verdict is Verdict.OK)


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("engine's storage", {"engine_storage_driver": "vfs"}),
        ("userland-proxy", {"engine_userland_proxy": None}),
        ("engine's rights", {"engine_rootless": True}),
        ("engine's users", {"engine_security": ["name=seccomp,profile=builtin", "name=userns"]}),
        ("other containers", {"engine_containers_running": 2}),
    ],
)
def test_an_engine_that_spoils_comparisons_is_warned_of(name: str, facts: Mapping[str, Any]) -> None:
    line = by_name(engine_lines(replace(GOOD_ENGINE, **facts)))[name]
    assert line.verdict is Verdict.WARNING
    assert line.advice


@pytest.mark.parametrize(
    ("name", "answers", "verdict"),
    [
        ("mmdebstrap", {"mmdebstrap": Completed(("mmdebstrap",), 127)}, Verdict.CANNOT),
        (
            "KVM",
            {"kvm": Completed(("python3",), 1, b"", b"Traceback\nFileNotFoundError: no /dev/kvm")},
            Verdict.WARNING,
        ),
        ("KVM", {"kvm": TimedOut("python3 did not end")}, Verdict.WARNING),
        ("noise", {"spin": Completed(("python3",), 0, b"not json")}, Verdict.WARNING),
        (
            "noise",
            {"spin": Completed(("python3",), 0, json.dumps({**SPUN, "lost_s": 0.5}).encode())},
            Verdict.WARNING,
        ),
        ("noise", {"spin": Completed(("python3",), 1)}, Verdict.WARNING),
    ],
)
def test_what_fails_when_tried_gets_its_verdict(name: str, answers: Mapping[str, Answer], verdict: Verdict) -> None:
    tried = host(**answers)
    line = by_name([builder_line(tried), kvm_line(tried, LAYOUT), noise_line(tried)])[name]
    assert line.verdict is verdict
    assert line.advice


@pytest.mark.parametrize(
    ("accelerator", "why", "told"),
    [
        (
            "tcg",
            "no guest could run under KVM: kvm_buf_set_msrs",
            (Verdict.WARNING, "no guest could run under KVM: kvm_buf_set_msrs"),
        ),
        ("kvm", None, (Verdict.OK, "a machine ran under it")),
    ],
)
def test_a_kvm_that_was_tried_is_told_by_what_came_of_it(accelerator: str, why: str | None, told: object) -> None:
    tried = host()
    tried.files[f"{LAYOUT.machines}/accelerator.json"] = json.dumps(
        {"mark": f"{tried.boot_id} ", "accelerator": accelerator, "why": why, "until_uptime_s": None}
    ).encode()
    line = kvm_line(tried, LAYOUT)
    assert (line.verdict, line.found) == told


def test_the_noise_line_says_what_was_measured_with_its_unit() -> None:
    assert "lost 0.07% of its time in 3 pauses over 0.1 ms, the longest 0.40 ms" in noise_line(host()).found


def test_a_loop_counts_every_pause_longer_than_the_limit() -> None:
    everything, nothing = spin(0.02, 0), spin(0.02, 10**10)
    assert everything["pauses"] > 100
    assert 0 < everything["lost_s"] <= everything["seconds"]
    assert (nothing["pauses"], nothing["lost_s"], nothing["longest_ms"]) == (0, 0, 0)


class OneLeft:
    """A ledger with one thing of a run that died."""

    def entries(self) -> tuple[Made, ...]:
        return self.abandoned()

    def abandoned(self) -> tuple[Made, ...]:
        return (Made(Kind.CONTAINER, "tare-x", "local", Process(1, 1, "boot")),)


def test_leftovers_of_dead_runs_are_told(tmp_path: Path) -> None:
    findings = examine(
        host(), EnvironmentLacks("no engine", hint="start it"), Layout(tmp_path), cast("Ledger", OneLeft())
    )
    assert by_name(findings.lines)["leftovers"].found == "1 of runs that died: container"


def test_without_an_engine_nothing_can_run_and_the_engine_is_why(tmp_path: Path) -> None:
    findings = examine(host(), EnvironmentLacks("no engine answers", hint="start it"), Layout(tmp_path), None)
    assert not findings.able
    assert findings.engine is None
    line = by_name(findings.lines)["engine"]
    assert (line.verdict, line.found) == (Verdict.CANNOT, "no engine answers (start it)")


def test_an_engine_that_stops_answering_is_a_finding_and_no_crash(tmp_path: Path) -> None:
    class Broken:
        def version(self) -> None:
            raise docker.errors.APIError("gone")

    findings = examine(host(), cast("docker.DockerClient", Broken()), Layout(tmp_path), None)
    assert by_name(findings.lines)["engine"].verdict is Verdict.CANNOT


@pytest.mark.parametrize(
    ("below", "why"),
    [
        ("", None),
        ("not/yet/there", None),
        ("file/home", "{top}/file/home cannot be made: {top}/file is not a directory"),
        ("dangling", "{top}/dangling cannot be made: {top}/dangling is not a directory"),
    ],
)
def test_what_tare_keeps_needs_a_directory(tmp_path: Path, below: str, why: str | None) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    lacks = [lack.why for lack in HOME.ask(HostPlan(LocalHost(), Layout(tmp_path / below)))]
    assert lacks == ([] if why is None else [why.format(top=tmp_path)])


def test_a_home_on_a_file_system_that_is_mounted_read_only_cannot_be_written() -> None:
    refusing = FakeHost(answers={("test", "-w"): Completed(("test",), 1)})
    assert "/mnt/home is read-only" in (HOME.why_not(HostPlan(refusing, Layout(Path("/mnt/home")))) or "")


def test_the_command_ends_with_3_and_says_why_where_no_engine_answers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    result = CliRunner().invoke(app, ["doctor", "--json"])
    assert result.exit_code == 3
    document = json.loads(result.stdout)
    assert document["able"] is False
    assert document["engine"] is None
    assert document["host"]["cpu_count"] >= 1
    assert {"name", "verdict", "found", "advice", "needed_by"} == set(document["lines"][0])


def test_the_command_prints_one_table_for_people(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 3
    assert "cannot" in result.stdout
    assert "No study can run here until" in " ".join(result.stdout.split())
    assert not list(tmp_path.iterdir()), "looking at a machine must not leave anything"


@pytest.mark.parametrize(("user", "arms"), [("0", "bare and container arms"), ("1000", "container arms only")])
def test_a_user_is_not_told_that_bare_arms_can_run(user: str, arms: str, tmp_path: Path) -> None:
    machine = host()
    machine.answers[("id", "-u")] = Completed((), 0, f"{user}\n".encode())
    examination = examine(machine, EnvironmentLacks("none"), Layout(tmp_path), None)
    printed = io.StringIO()
    show(replace(examination, lines=()), Console(file=printed, width=200))
    assert f"A study with {arms} can run here." in printed.getvalue()
