"""What is said where tare-probe cannot look at all."""

from __future__ import annotations

from tare.doctor import Verdict
from tare.doctor.sampling import sampling_lines
from tare.sites import Completed
from tare.sites.binaries import PROBE, candidates
from tare.sites.fake import Answer, FakeHost

REFUSED = Completed((), 1, b"", b"a line\ntare-probe: this kernel is built without perf events\n")


def host(**changes: Answer) -> FakeHost:
    answers: dict[tuple[str, ...], Answer] = {
        ("mktemp", "-d"): Completed((), 0, b"/tmp/looking\n"),
        ("rm",): Completed((), 0),
    }
    for path in candidates(PROBE):
        answers[path, "record", "--help"] = Completed((), 0, b"      --targets <FILE>\n")
        answers[path, "profile"] = changes.get("profile", REFUSED)
        answers[path, "record", "--out"] = changes.get("record", REFUSED)
    return FakeHost(answers=answers)


def test_a_host_without_tare_probe_is_told_what_is_told_all_the_same() -> None:
    (line,) = sampling_lines(FakeHost())
    assert line.found == "tare-probe is missing"
    assert "CPU time by side" in (line.advice or "")


def test_the_programs_last_line_is_the_reason() -> None:
    stacks, blocks = sampling_lines(host())
    assert (stacks.verdict, stacks.found) == (Verdict.WARNING, "this kernel is built without perf events")
    assert (blocks.name, blocks.verdict) == ("block requests", Verdict.WARNING)


def test_output_that_is_not_whole_is_no_success() -> None:
    stacks, blocks = sampling_lines(host(profile=Completed((), 0), record=Completed((), 0)))
    assert "cannot be read" in stacks.found
    assert "cannot be read" in blocks.found
