from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tare.errors import RunFailed, StoreError
from tare.monitors import MonitorContext, Options, WatchedProcess, why_unavailable
from tare.monitors.profile.profile import Profile
from tare.monitors.profile.stacks import PROFILE, read_facts, read_profile
from tare.sites import Completed
from tare.sites.binaries import PROBE, candidates
from tare.sites.fake import Answer, FakeHost

REAL = Path(__file__).resolve().parents[2] / "data" / "explain" / "nat.parquet"
PARANOID = "/proc/sys/kernel/perf_event_paranoid"


def host(paranoid: str | None = "2", user: str = "0") -> FakeHost:
    answers: dict[tuple[str, ...], Answer] = {("id", "-u"): Completed((), 0, f"{user}\n".encode())}
    for path in candidates(PROBE):
        answers[path, "record", "--help"] = Completed((), 0, b"      --targets <FILE>\n")
    files = {} if paranoid is None else {PARANOID: f"{paranoid}\n".encode()}
    return FakeHost(answers=answers, files=files)


def scene(on: FakeHost, *watched: WatchedProcess, **options: int) -> MonitorContext:
    return MonitorContext(on, "/run/p", interval_s=1.0, most_s=100.0, watched=watched, options=options)


@pytest.mark.parametrize(("paranoid", "user"), [("2", "0"), ("4", "0"), ("0", "1000"), ("-1", "1000")])
def test_root_or_a_kernel_that_lets_everybody_can_have_it(paranoid: str, user: str) -> None:
    assert why_unavailable(Profile(), host(paranoid, user), 1.0, {}) is None


@pytest.mark.parametrize("paranoid", ["4", "2", "1"])
def test_others_are_told_what_the_kernel_refuses_and_what_to_do(paranoid: str) -> None:
    why = why_unavailable(Profile(), host(paranoid, "1000"), 1.0, {}) or ""
    assert f"perf_event_paranoid is {paranoid}" in why
    assert "run as root" in why


STATUS = b"Name:\tcat\nCapEff:\t%016x\nSeccomp:\t%d\n"
"""Of proc_pid_status(5); capability 21 is CAP_SYS_ADMIN, 38 CAP_PERFMON."""


def confined(capabilities: int, seccomp: int, refused: bytes, *, code: int | None = None) -> FakeHost:
    of = host()
    of.answers["mktemp", "-d"] = Completed((), 0, b"/tmp/place\n")
    of.answers["rm", "-rf", "/tmp/place"] = Completed((), 0, b"")
    for path in candidates(PROBE):
        tried = (path, "profile", "--out", f"/tmp/place/{PROFILE}", "--duration", "0.01")
        of.answers[tried] = Completed((), bool(refused) if code is None else code, b"", refused)
    of.files["/proc/self/status"] = STATUS % (capabilities, seccomp)
    return of


@pytest.mark.parametrize(("capabilities", "seccomp"), [(1 << 38, 2), (0, 0)])
def test_root_behind_a_filter_or_without_capabilities_is_told_what_refuses_it(
    capabilities: int, seccomp: int
) -> None:
    refused = b"tare-probe: stacks of all CPUs cannot be sampled: Operation not permitted (os error 1)\n"
    why = why_unavailable(Profile(), confined(capabilities, seccomp, refused), 1.0, {})
    assert why == "stacks of all CPUs cannot be sampled: Operation not permitted (os error 1)"
    assert why_unavailable(Profile(), confined(capabilities, seccomp, b""), 1.0, {}) is None


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        (b"tare-probe: ring of CPU 3: Cannot allocate memory (os error 12)\n", "ring of CPU 3: Cannot allocate"),
        (b"tare-probe: no names\ntare-probe: /tmp/place/profile.parquet: Permission denied\n", "Permission denied"),
        (b"tare-probe: error while loading shared libraries: libm.so.6: cannot open\n", "libm.so.6: cannot open"),
        (b"error: unexpected argument '--hz'\n\nFor more information, try '--help'.\n", "unexpected argument"),
        (b"\nthread 'main' panicked at x.rs:1:2:\nno thread\n", "no thread"),
        (b"", "tare-probe, tried for 10 ms, ended with 1 and printed nothing"),
    ],
)
def test_whatever_else_fails_in_the_trial_is_a_reason_too(printed: bytes, why: str) -> None:
    reason = why_unavailable(Profile(), confined(0, 0, printed, code=1), 1.0, {}) or ""
    assert reason.startswith("stacks cannot be sampled: ")
    assert why in reason


def test_a_trial_that_ends_well_without_a_profile_is_no_proof() -> None:
    of = confined(0, 0, b"tare-probe: 3 samples of 2 CPUs\n", code=0)
    assert why_unavailable(Profile(), of, 1.0, {}) is None
    of.answers["test", "-s", f"/tmp/place/{PROFILE}"] = Completed((), 1)
    reason = why_unavailable(Profile(), of, 1.0, {})
    assert reason == "stacks cannot be sampled: tare-probe, tried for 10 ms, wrote no profile"


@pytest.mark.parametrize("capability", [21, 38])
def test_root_with_a_capability_and_no_filter_is_not_tried(capability: int) -> None:
    refused = b"tare-probe: stacks of all CPUs cannot be sampled: never asked\n"
    assert why_unavailable(Profile(), confined(1 << capability, 0, refused), 1.0, {}) is None


def test_a_kernel_or_container_without_perf_events_is_told() -> None:
    assert "no perf events" in (why_unavailable(Profile(), host(None), 1.0, {}) or "")


def test_a_host_without_tare_probe_is_told_how_to_get_it() -> None:
    assert "make setup" in (why_unavailable(Profile(), FakeHost(files={PARANOID: b"2\n"}), 1.0, {}) or "")


@pytest.mark.parametrize(
    ("options", "message"), [({"hz": 0}, "1 to 999"), ({"hz": 99.5}, "whole number"), ({"rate": 99}, "not rate")]
)
def test_a_rate_that_cannot_be_is_told(options: Options, message: str) -> None:
    assert message in (why_unavailable(Profile(), host(), 1.0, options) or "")


def test_it_samples_at_its_rate_and_claims_what_is_watched_but_no_network_namespace() -> None:
    sut = WatchedProcess("sut", 7, own_cgroup=True, own_network=True)
    (program,) = Profile().programs(scene(host(), sut, WatchedProcess("proxy", 8), hz=99))
    words = " ".join(program.argv)
    assert program.argv[1:4] == ("profile", "--out", "/run/p/profile.parquet")
    assert "--hz 99 " in words
    assert words.endswith("--cgroup sut=pid:7 --pid sut=7 --pid proxy=8")
    assert program.started == "/run/p/profile.parquet.part"


def test_a_client_that_comes_later_is_handed_on_sighup() -> None:
    update = Profile().update_targets(
        scene(host()), (WatchedProcess("client", 9, own_cgroup=True, own_network=True),)
    )
    assert update is not None
    assert (update.signal, update.content) == ("HUP", "cgroup client=pid:9\npid client=9\n")


def test_the_record_keeps_what_it_says_of_itself(tmp_path: Path) -> None:
    (tmp_path / PROFILE).write_bytes(REAL.read_bytes())
    reading = Profile().read(scene(host()), tmp_path)
    assert reading.table is None
    assert reading.samples == read_facts(REAL).samples
    assert reading.values["lost_samples"] == 0
    assert reading.values["kernel_symbols_missing"] is None
    assert 0 < reading.values["cpu_s"] < 1
    assert reading.values["ended_monotonic_s"] - reading.values["began_monotonic_s"] == pytest.approx(6, abs=0.5)


def test_a_profile_that_is_missing_fails_the_run_with_what_the_program_said(tmp_path: Path) -> None:
    (tmp_path / "profile.stderr").write_text("tare-probe: stacks of all CPUs cannot be sampled\n")
    with pytest.raises(RunFailed, match="missing") as refused:
        Profile().read(scene(host()), tmp_path)
    assert refused.value.hint == "tare-probe: stacks of all CPUs cannot be sampled"


def test_a_profile_that_is_cut_short_is_told(tmp_path: Path) -> None:
    path = tmp_path / PROFILE
    path.write_bytes(REAL.read_bytes()[:-20])
    with pytest.raises(StoreError, match="not a profile of tare-probe"):
        read_profile(path)


def test_a_profile_of_another_version_or_without_a_fact_is_told(tmp_path: Path) -> None:
    path = tmp_path / PROFILE
    document = json.loads(pl.read_parquet_metadata(REAL)["tare.profile"])
    rows = pl.read_parquet(REAL).head(3)
    for changes, words in (({"profile_version": 2}, "another version"), ({"slot_ns": None}, "slot_ns")):
        facts = {key: value for key, value in (document | changes).items() if value is not None}
        rows.write_parquet(path, metadata={"tare.profile": json.dumps(facts)})
        with pytest.raises(StoreError, match=words):
            read_facts(path)
