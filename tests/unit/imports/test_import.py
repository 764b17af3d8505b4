"""Others' files become records, a study and a plan, and are analysed as tare's own."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest
from tests.unit.imports.test_mapping import GOOD, written
from typer.testing import CliRunner

from tare.analyze import analyze
from tare.analyze.estimate import Verdict
from tare.cli import app
from tare.errors import StudyError
from tare.imports import Import, collect, load_mapping
from tare.imports.parsers.registry import PARSERS
from tare.record.host_facts import HostFacts
from tare.record.observation import Parity
from tare.report import EXPORTERS, terminal
from tare.report.content import build_report
from tare.store import open_store, verify
from tare.workloads.sysbench.output import read_output

YCSB = Path(__file__).parents[2] / "data" / "ycsb"
SYSBENCH = Path(__file__).parents[2] / "data" / "sysbench"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Setups I and IV, two thread counts, four repetitions; the middle of each name says nothing."""
    place = tmp_path / "results" / "m1"
    place.mkdir(parents=True)
    for sut in ("false", "true"):
        for threads in (2, 10):
            for repetition in range(1, 5):
                slower = 10.0 + threads + repetition + (3.0 if sut == "true" else 0.0)
                text = (YCSB / "hdr.stdout").read_text().replace("6.518495996756866", str(slower))
                (place / f"r-{sut}_{sut}_{threads}_x_{repetition}.txt").write_text(text)
    (place / "notes.txt").write_text("not a result")
    return tmp_path / "results"


def imported(tmp_path: Path, results: Path, text: str = GOOD) -> Import:
    return collect(load_mapping(written(tmp_path, text)), results)


def test_each_file_is_a_run_and_other_files_are_left_alone(tmp_path: Path, results: Path) -> None:
    made = imported(tmp_path, results)
    assert (len(made.runs), made.files) == (16, 16)
    assert made.plan.study.factors["threads"] == ("2", "10")
    first = made.runs[0].record
    assert first.levels == {"threads": "2", "client": "bare", "sut": "bare"}
    assert first.imported is not None
    assert first.imported.file == "m1/r-false_false_2_x_1.txt"
    assert first.imported.repetition == "1"


def test_what_is_not_known_of_such_a_run_stays_empty(tmp_path: Path, results: Path) -> None:
    record = imported(tmp_path, results).runs[0].record
    assert (record.phases, record.host, dict(record.settings)) == ((), HostFacts(), {})
    assert (record.engine, record.effective) == (None, None)
    assert record.path is None
    assert record.usage is None
    assert record.parity == Parity()


def test_runs_are_paired_by_configuration_and_repetition(tmp_path: Path, results: Path) -> None:
    made = imported(tmp_path, results)
    analysis = analyze(made.plan.study, [run.record for run in made.runs])
    whole = analysis.finding("IV", "read_latency_mean")
    assert whole.estimate.n == 8
    assert dict(whole.blocks)[1] == pytest.approx(16.0 / 13.0 - 1)
    blocks = {
        each.levels["threads"]: each.finding("IV", "read_latency_mean").estimate.n for each in analysis.strata
    }
    assert blocks == {"2": 4, "10": 4}


def test_published_figures_stand_where_they_belong(tmp_path: Path, results: Path) -> None:
    made = imported(tmp_path, results)
    analysis = analyze(made.plan.study, [run.record for run in made.runs])
    assert analysis.finding("IV", "read_latency_mean").published == 0.01
    small, large = analysis.strata
    assert small.finding("IV", "latency_mean").published is None
    assert large.finding("IV", "latency_mean").published == 0.02


def test_the_publications_own_way_is_followed_beside(tmp_path: Path, results: Path) -> None:
    text = GOOD + "published_by: relative-change-of-averages\n"
    made = imported(tmp_path, results, text)
    analysis = analyze(made.plan.study, [run.record for run in made.runs])
    each = [stratum.finding("IV", "read_latency_mean").as_published for stratum in analysis.strata]
    points = [one.point for one in each if one is not None]
    assert points == pytest.approx([3.0 / 14.5, 3.0 / 22.5])
    whole = analysis.finding("IV", "read_latency_mean").as_published
    assert whole is not None
    assert whole.point == pytest.approx(sum(point or 0.0 for point in points) / 2)
    assert whole.low is None


def test_a_terminal_shows_each_condition_and_all_together_where_there_are_several(
    tmp_path: Path, results: Path
) -> None:
    def warnings(result: Import) -> list[str]:
        study, records = result.plan.study, [run.record for run in result.runs]
        return terminal.render(build_report(study, records), width=80).splitlines()

    lines = warnings(imported(tmp_path, results))
    names = [line for line in lines if line in {"threads 2", "threads 10", "all"}]
    assert names == ["threads 2", "threads 10", "all"]
    head = lines[lines.index("threads 2") - 1].split()
    assert head[:4] == ["metric", "arm", "n", "published"]
    for path in results.rglob("*_2_x_*"):
        path.unlink()
    one = [line for line in warnings(imported(tmp_path, results)) if line in names]
    assert one == ["threads 10"]


def test_validity_says_that_nothing_was_seen_around_the_runs(tmp_path: Path, results: Path) -> None:
    made = imported(tmp_path, results)
    analysis = analyze(made.plan.study, [run.record for run in made.runs])
    assert "imported" in {alarm.rule for alarm in analysis.alarms}
    assert not {"order-effect", "autocorrelation"} & {alarm.rule for alarm in analysis.alarms}


def test_with_a_margin_each_arm_has_a_verdict(tmp_path: Path, results: Path) -> None:
    def verdicts(text: str) -> list[tuple[str, float | None, Verdict | None]]:
        made = imported(tmp_path, results, text)
        findings = analyze(made.plan.study, [run.record for run in made.runs]).findings
        return [(each.metric, each.judgement.margin, each.judgement.verdict) for each in findings]

    assert {(margin, verdict) for _, margin, verdict in verdicts(GOOD)} == {(None, None)}
    verdict_of = verdicts(GOOD + "margins: {read_latency_mean: 0.05}\n")
    assert ("read_latency_mean", 0.05, Verdict.DIFFERENT) in verdict_of
    assert all(verdict is None for metric, _, verdict in verdict_of if metric != "read_latency_mean")


@pytest.mark.parametrize("style", list(EXPORTERS))
def test_every_report_says_that_it_was_imported(style: str, tmp_path: Path, results: Path) -> None:
    made = imported(tmp_path, results, GOOD + "origin: somewhere else\n")
    text = EXPORTERS[style](build_report(made.plan.study, [run.record for run in made.runs]))
    assert "threads" in text
    assert style == "csv" or "somewhere else" in text
    if style in ("html", "md"):
        assert "Unknown: others made these runs" in text
        assert "Read from the kernel" not in text
        assert "differs between arms" not in text


def test_a_file_that_tells_of_a_failure_is_a_failed_run(tmp_path: Path, results: Path) -> None:
    broken = results / "m1" / "r-true_true_2_x_3.txt"
    broken.write_text((YCSB / "unknown-workload.stdout").read_text())
    made = imported(tmp_path, results)
    (failed,) = [run.record for run in made.runs if not run.record.outcome.ok]
    assert failed.outcome.reason is not None
    assert "ClassNotFoundException" in failed.outcome.reason
    analysis = analyze(made.plan.study, [run.record for run in made.runs])
    assert analysis.finding("IV", "throughput").estimate.n == 7


def test_importing_again_changes_nothing_and_other_files_need_another_store(tmp_path: Path, results: Path) -> None:
    mapping, store = written(tmp_path, GOOD), tmp_path / "store"
    command = ["import", str(mapping), str(results), "--store", str(store)]
    assert CliRunner().invoke(app, command).exit_code == 0
    before = open_store(store).records()
    assert CliRunner().invoke(app, command).exit_code == 0
    assert open_store(store).records() == before
    assert verify(open_store(store)) == ()
    assert open_store(store).raw(before[0], before[0].raw[0]).read_text().startswith("[OVERALL]")
    for threads in (2, 10):  # blocks are numbered by all that there is: more of it is no extension
        for sut in ("false", "true"):
            text = (YCSB / "hdr.stdout").read_text()
            (results / "m1" / f"r-{sut}_{sut}_{threads}_x_5.txt").write_text(text)
    assert "from other files (16 there, 20 here)" in str(CliRunner().invoke(app, command).exception)
    for added in results.glob("m1/*_x_5.txt"):
        added.unlink()
    mended = results / "m1" / "r-true_true_2_x_3.txt"
    was = mended.read_text()
    mended.write_text(was.replace("AverageLatency", "Average"))
    assert "from other files, or by another mapping" in str(CliRunner().invoke(app, command).exception)
    mended.write_text(was)
    mapping.write_text(GOOD.replace('{bare: "false", docker: "true"}', '{bare: "true", docker: "false"}'))
    assert "or by another mapping" in str(CliRunner().invoke(app, command).exception)
    mapping.write_text(GOOD)
    mended.unlink()
    assert "belongs to another plan" in str(CliRunner().invoke(app, command).exception)
    assert open_store(store).records() == before


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "the file is empty"),
        (gzip.compress(b"", mtime=0), "the file is empty"),
        (b"[OVERALL], \0\0\0\0", "the file is not a text file"),
    ],
)
def test_what_is_no_text_is_a_failed_run_and_told_at_once(
    content: bytes, why: str, tmp_path: Path, results: Path
) -> None:
    (results / "m1" / "r-true_true_2_x_3.txt").write_bytes(content)
    command = ["import", str(written(tmp_path, GOOD)), str(results), "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0
    assert "warning: 1 failed run, the first of m1/r-true_true_2_x_3.txt: " in result.output
    assert why in result.output
    (failed,) = [run.record for run in imported(tmp_path, results).runs if not run.record.outcome.ok]
    assert why in (failed.outcome.reason or "")


def test_a_link_that_leads_out_of_the_results_is_not_copied_into_the_store(tmp_path: Path, results: Path) -> None:
    """Found by attack: results of somebody else had a file of the reader's own copied into the store."""
    (tmp_path / "id_rsa").write_text("a key")
    leading = results / "m1" / "r-true_true_2_x_3.txt"
    leading.rename(results / "m1" / "kept")
    leading.symlink_to("kept")
    assert len(imported(tmp_path, results).runs) == 16
    leading.unlink()
    leading.symlink_to(tmp_path / "id_rsa")
    with pytest.raises(StudyError, match=r"x_3\.txt is a link that leads out of"):
        imported(tmp_path, results)


def test_a_report_that_its_parser_cannot_take_is_a_failed_run_without_control_of_the_terminal(
    tmp_path: Path, results: Path
) -> None:
    """Found by attack: 5000 digits ended in a traceback, and a complaint went to the terminal as it was."""
    (results / "m1" / "r-true_true_2_x_3.txt").write_text(
        f"2024-01-01 00:00:00:000 {'9' * 5000} sec: 1 operations; x\n"
    )
    (results / "m1" / "r-true_true_2_x_4.txt").write_text("Could not \x1b]52;c;ZXZpbA==\x07\n")
    command = ["import", str(written(tmp_path, GOOD)), str(results), "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.exception
    assert "warning: 2 failed runs" in result.output
    assert "\x1b" not in result.output


def test_files_of_which_none_is_a_good_run_are_refused(tmp_path: Path, results: Path) -> None:
    with pytest.raises(StudyError, match=r"not one of 16 runs is good: .*it has no report of sysbench") as error:
        imported(tmp_path, results, GOOD.replace("name: ycsb", "name: sysbench"))
    assert "the format of the parser 'sysbench'" in (error.value.hint or "")


def test_what_was_published_of_a_part_stands_beside_that_part_alone(tmp_path: Path, results: Path) -> None:
    text = (
        GOOD.replace("{threads: any}", "{kind: any, threads: any}")
        .replace("strata: [threads]", "strata: [kind, threads]")
        .replace("_*_{repetition}", "_{kind}_{repetition}")
        .replace("threads: 10}", "kind: x}")
    )
    published = imported(tmp_path, results, text).plan.study.published
    levels = {"client": "docker", "sut": "docker"}
    assert [(each.metric, each.levels) for each in published] == [
        ("read_latency_mean", levels),
        ("latency_mean", levels),
    ]
    for sut in ("false", "true"):
        other = results / "m1" / f"r-{sut}_{sut}_2_y_1.txt"
        other.write_text((YCSB / "hdr.stdout").read_text())
    published = imported(tmp_path, results, text).plan.study.published
    assert [each.metric for each in published] == ["read_latency_mean"]


def test_copies_in_a_store_are_no_files_to_import(tmp_path: Path, results: Path) -> None:
    text = GOOD.replace("r-{client}", "*r-{client}")
    command = ["import", str(written(tmp_path, text)), str(results), "--store", str(results / "store")]
    for _ in range(2):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.exception


def test_one_file_under_two_names_is_told(tmp_path: Path, results: Path) -> None:
    """Counted as two repetitions, it would make the interval narrower than what was measured."""
    for name in ("r-true_true_2_x_1.txt", "r-true_true_2_x_2.txt"):
        (results / "m1" / name).unlink()  # by chance as slow as two others
    (results / "m1" / "r-true_true_2_x_9.txt").write_bytes((results / "m1" / "r-true_true_2_x_3.txt").read_bytes())
    command = ["import", str(written(tmp_path, GOOD)), str(results), "--store", str(tmp_path / "store")]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0
    assert "m1/r-true_true_2_x_3.txt and m1/r-true_true_2_x_9.txt are identical (and 1 more)" in result.output


def test_a_name_that_no_record_can_hold_is_told(tmp_path: Path, results: Path) -> None:
    name = os.fsdecode(b"r-true_true_2_x_4\xe9.txt")
    (results / "m1" / name).write_text((YCSB / "hdr.stdout").read_text())
    with pytest.raises(StudyError, match=r"cannot be stored under that name"):
        imported(tmp_path, results)


def test_two_files_of_one_run_are_refused(tmp_path: Path, results: Path) -> None:
    text = (YCSB / "hdr.stdout").read_text()
    (results / "m1" / "r-true_true_2_y_3.txt").write_text(text)
    with pytest.raises(StudyError, match="are the same run: arm IV, repetition 3"):
        imported(tmp_path, results)


def test_a_text_that_stands_for_no_level_is_refused(tmp_path: Path, results: Path) -> None:
    (results / "m1" / "r-maybe_true_2_x_3.txt").write_text("")
    with pytest.raises(StudyError, match=r"'maybe' of \{client\} is not a level"):
        imported(tmp_path, results)


def test_a_directory_without_such_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(StudyError, match="no file in"):
        imported(tmp_path, tmp_path / "empty")
    with pytest.raises(StudyError, match="is no directory"):
        imported(tmp_path, tmp_path / "nowhere")


def test_reports_of_sysbench_are_read_with_histogram_and_windows(tmp_path: Path) -> None:
    place = tmp_path / "results"
    place.mkdir()
    for sut, name in (("false", "closed"), ("true", "rate"), ("more", "no-events")):
        (place / f"r-{sut}.txt").write_bytes((SYSBENCH / f"{name}.stdout").read_bytes())
    text = (
        "format: 1\nname: others\nquestion: What?\nfiles: 'r-{sut}.txt'\nparser: {name: sysbench}\n"
        'factors: {sut: {bare: "false", docker: "true", more: more}}\nbaseline: bare\n'
    )
    bare, docker, failed = (run.record for run in imported(tmp_path, place, text).runs)
    assert bare.measurement is not None
    assert docker.measurement is not None
    assert bare.measurement.latency.blind_to_stalls is True
    assert docker.measurement.latency.blind_to_stalls is False
    assert bare.measurement.windows
    assert bare.measurement.histogram
    assert not failed.outcome.ok


def test_another_percentile_of_sysbench_is_told_as_what_it_is() -> None:
    text = (SYSBENCH / "closed.stdout").read_text()
    text = text.replace("95th percentile", "99th percentile").replace("(ms,95%)", "(ms,99%)")
    (report,) = PARSERS["sysbench"].reports(
        "".join(line for line in text.splitlines(keepends=True) if " |" not in line), 0.0
    )
    assert report.whole is not None
    latency = report.whole.latency
    assert (latency.p95_ms, latency.p99_ms) == (None, read_output(text).figure("latency_p99_ms"))
    assert report.whole.windows
    assert all(window.latency_p95_ms is None for window in report.whole.windows)


def test_conditions_in_which_two_imports_differ_are_named(tmp_path: Path, results: Path) -> None:
    """They are in no arm, so that nothing else would tell two sizes of machine apart."""
    for name, begin in (("others", "\n"), ("again", "\n\n")):
        (tmp_path / name).mkdir()
        for each in (results / "m1").glob("r-*_10_*"):
            (tmp_path / name / each.name.replace("_10_", "_50_")).write_text(begin + each.read_text())
    for name in ("results", "others", "again"):
        words = [
            "import",
            str(written(tmp_path, GOOD)),
            str(tmp_path / name),
            "--store",
            f"{tmp_path / name}-store",
        ]
        assert CliRunner().invoke(app, words).exit_code == 0
    one, other, again = (f"{tmp_path / name}-store" for name in ("results", "others", "again"))
    result = CliRunner().invoke(app, ["compare", one, other, "--format", "json"])
    unlike = {each["name"]: (each["a"], each["b"]) for each in json.loads(result.stdout)["unlike"]}
    assert unlike == {"conditions.threads": ("2, 10", "50"), "protocol.blocks": ("8", "4")}
    text = CliRunner().invoke(app, ["compare", other, again, "--format", "md"]).output
    assert "for imported runs only the study is recorded" in text
    assert "are the same" not in text


def test_a_figure_that_cannot_be_meant_is_a_failed_run(tmp_path: Path, results: Path) -> None:
    file = results / "m1" / "r-false_false_2_x_1.txt"
    file.write_text(re.sub(r"(\[READ\], AverageLatency\(us\), ).*", r"\g<1>1e308", file.read_text()))
    records = [run.record for run in imported(tmp_path, results).runs]
    (failed,) = (record for record in records if not record.outcome.ok)
    assert "is not plausible" in (failed.outcome.reason or "")
    json.dumps([record.model_dump(mode="json") for record in records], allow_nan=False)
