"""What reports say of themselves, as parts of a mapping."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.imports.test_import import imported

from tare.errors import StudyError

DATA = Path(__file__).parents[2] / "data" / "imports"


def test_the_log_of_one_thread_of_pgbench_is_no_run(tmp_path: Path) -> None:
    """Each thread writes a log of its own, whose rate is a part of the run's."""
    log = (DATA / "pgbench" / "intervals.log").read_bytes()
    place = tmp_path / "results"
    place.mkdir()
    for name in ("a.4711", "b.4712", "b.4712.1"):
        (place / name).write_bytes(log)
    text = (
        "format: 1\nname: others\nquestion: What?\nfiles: '{sut}.{pid}'\nparser: {name: pgbench}\n"
        "factors: {sut: {bare: a, docker: b}}\nbaseline: bare\nrepetition: pid\n"
    )
    runs = [run.record for run in imported(tmp_path, place, text).runs]
    assert [(run.arm, run.outcome.ok) for run in runs] == [("bare", True), ("docker", False), ("docker", False)]
    assert "join all" in (runs[1].outcome.reason or "")


def test_what_some_reports_do_not_say_can_be_unsaid(tmp_path: Path) -> None:
    place = tmp_path / "results"
    place.mkdir()
    for sut in ("a", "b"):
        tests = [(DATA / "sysbench" / f"{name}.txt").read_text() for name in ("cpu", "memory")]
        (place / f"{sut}.log").write_text("".join(tests))
    text = (
        "format: 1\nname: others\nquestion: What?\nfiles: '{sut}.log'\n"
        "parser: {name: sysbench, parts: {prime: prime}}\n"
        "factors: {sut: {bare: a, docker: b}}\nbaseline: bare\nconditions: {prime: any}\n"
    )
    with pytest.raises(StudyError, match="does not say its 'prime'") as error:
        imported(tmp_path, place, text)
    assert "`prime: prime?`" in (error.value.hint or "")
    made = imported(tmp_path, place, text.replace("prime: prime}", "prime: prime?}"))
    assert [run.record.levels["prime"] for run in made.runs] == ["10000", "10000", "unsaid", "unsaid"]
