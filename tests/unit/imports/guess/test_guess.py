"""What a directory without a mapping is taken for, and that the guess is written before anything is imported."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.record.parts import measured, rate_of
from typer.testing import CliRunner

from tare.cli import app
from tare.errors import StudyError
from tare.imports import Import, collect, load_mapping
from tare.imports.guess import guess, survey
from tare.store import open_store

DATA = Path(__file__).parents[3] / "data"
SYSBENCH = (DATA / "imports" / "sysbench" / "cpu.txt").read_text()
PGBENCH = (DATA / "imports" / "pgbench" / "loop.txt").read_text()
MEMORY = (DATA / "imports" / "sysbench" / "memory.txt").read_text()


def sysbench(threads: int = 2, events: int = 13967) -> str:
    """A report with so many threads; the number of events makes it another run."""
    mean = f"avg:                                    {5993.64 / events:.2f}"
    text = SYSBENCH.replace("Number of threads: 2", f"Number of threads: {threads}")
    return text.replace("events:              13967", f"events:              {events}").replace(
        "avg:                                    0.43", mean
    )


@pytest.fixture
def results(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """Write files by their path below a directory."""

    def write(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / "results" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "results"

    return write


def imported(directory: Path, tmp_path: Path) -> Import:
    """Import by the guess."""
    mapping = tmp_path / "guessed.yaml"
    mapping.write_text(guess(survey(directory)).text)
    return collect(load_mapping(mapping), directory)


def levels(made: Import) -> set[tuple[str, ...]]:
    return {(run.record.arm, *run.record.levels.values()) for run in made.runs}


def test_platform_threads_and_repetition_are_read_from_names(
    results: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    names = {
        f"res-{sut}-t{threads}-{run}.log": sysbench(threads, 13900 + 10 * threads + run + (sut == "docker"))
        for sut in ("bare", "docker")
        for threads in (1, 16)
        for run in (1, 2, 3)
    }
    place = results(names)
    guessed = guess(survey(place))
    assert 'files: "res-{platform}-t{threads}-{repetition}.log"' in guessed.text
    assert guessed.found[:5] == (
        "12 reports of sysbench 1.0.20 in 12 files",
        "platform from the files' names: bare, docker",
        "baseline: bare",
        "threads from the files' names: 1, 16",
        "3 repetitions from the files' names",
    )
    made = imported(place, tmp_path)
    assert levels(made) == {(sut, t, sut) for sut in ("bare", "docker") for t in ("1", "16")}
    assert made.plan.study.baseline == "bare"
    assert made.unpaired is None


def test_what_reports_say_is_a_condition_where_no_name_has_it(
    results: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    place = results({f"{sut}/run{run}.txt": PGBENCH for sut in ("native", "container") for run in (1, 2)})
    guessed = guess(survey(place))
    assert "    clients: clients  # the reports say it: 1 to 4" in guessed.text
    made = imported(place, tmp_path)
    assert len(made.runs) == 12
    assert levels(made) == {(sut, c, sut) for sut in ("native", "container") for c in ("1", "2", "4")}


def test_tests_that_do_not_say_the_same_are_not_mixed(
    results: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    """A memory test says no prime limit, a CPU test no block size: each is paired with its like."""
    place = results({"metal.txt": SYSBENCH + MEMORY, "docker.txt": MEMORY + SYSBENCH})
    made = imported(place, tmp_path)
    rates = {
        (run.record.arm, run.record.levels["test"]): round(rate_of(run.record))
        for run in made.runs
        if run.record.measurement
    }
    assert rates == {
        (arm, test): rate for arm in ("metal", "docker") for test, rate in (("cpu", 4651), ("memory", 6597402))
    }


def test_words_of_different_number_are_cut_where_they_cross(
    results: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    tests = ("cpu", "fileio_rd", "fileio_wr")
    place = results({f"{sut}_{test}.txt": sysbench() for sut in ("host_machine", "my_container") for test in tests})
    made = imported(place, tmp_path)
    assert set(made.plan.study.factors["platform"]) == {"host_machine", "my_container"}
    assert made.plan.study.baseline == "host_machine"
    assert {run.record.levels["part1"] for run in made.runs} == set(tests)


def test_a_part_that_occurs_in_one_platform_only_is_a_factor(
    results: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    names = [
        f"{sut}-{net}-{run}.log"
        for sut, net in (("bare", "none"), ("docker", "bridge"), ("docker", "host"))
        for run in (1, 2)
    ]
    made = imported(results({name: sysbench() for name in names}), tmp_path)
    assert {arm.name for arm in made.plan.study.arms} == {"bare-none", "docker-bridge", "docker-host"}
    assert made.plan.study.baseline == "bare-none"
    assert made.unpaired is None


def test_dates_are_ignored_and_runs_numbered_as_they_come(
    results: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    names = {f"{sut}_2024010{day}.log": sysbench(2, 13900 + day) for day in (1, 2) for sut in ("vm", "metal")}
    place = results(names)
    assert "repetition: row" in guess(survey(place)).text
    made = imported(place, tmp_path)
    assert [(run.record.block, run.record.arm) for run in made.runs] == [
        (1, "metal"),
        (1, "vm"),
        (2, "metal"),
        (2, "vm"),
    ]


def test_what_repeats_a_folder_s_name_and_holds_what_separates_parts_is_one_ignored_part(
    results: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    tests = ("point_select_1", "point_select_8", "read_1", "read_8")
    place = results({f"{sut}/{test}/{test}_out.log": sysbench() for sut in ("vm", "metal") for test in tests})
    made = imported(place, tmp_path)
    assert len(made.runs) == 8
    assert all(run.record.outcome.ok for run in made.runs)
    pattern = next(line for line in guess(survey(place)).text.splitlines() if line.startswith("files:"))
    assert re.fullmatch(r"\{\w+\}_out\.log\"", pattern.rpartition("/")[2])


def test_versions_that_differ_between_arms_are_told(results: Callable[[Mapping[str, str]], Path]) -> None:
    other = SYSBENCH.replace("sysbench 1.0.20", "sysbench 1.0.18")
    sentences = guess(survey(results({"bare.log": SYSBENCH, "docker.log": other}))).found
    assert "the arms differ in version: bare 1.0.20; docker 1.0.18" in sentences


def test_what_describes_the_load_is_no_factor(results: Callable[[Mapping[str, str]], Path], tmp_path: Path) -> None:
    """Versions 13 and 18 were compared, with two scripts; each file ends with a time."""
    plain = (DATA / "imports" / "pgbench" / "plain.txt").read_text()
    files = {"write": plain, "readonly": plain.replace("TPC-B (sort of)", "select only")}
    names = {
        f"pgbench_{v}_{each}_{v}{n}829.log": text for v in (13, 18) for n, (each, text) in enumerate(files.items())
    }
    made = imported(results(names), tmp_path)
    assert made.plan.study.factors["variant"] == ("13", "18")
    assert made.unpaired is None


def test_folders_of_different_depth_are_read_from_their_ends(
    results: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    place = results({f"{top}/results/{top}/run{n}.log": sysbench() for top in ("bare", "docker") for n in (1, 2)})
    (place / "docker").rename(place / "moved")
    (place / "deep").mkdir()
    (place / "moved").rename(place / "deep" / "docker")
    made = imported(place, tmp_path)
    assert len(made.runs) == 4
    assert made.unpaired is None


def test_runs_with_a_few_errors_are_taken_and_told(
    results: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    oltp = (DATA / "sysbench" / "closed.stdout").read_text()
    assert "ignored errors:                      0      (0.00 per sec.)" in oltp
    few = oltp.replace("ignored errors:                      0 ", "ignored errors:                      1 ")
    place = results({"bare.log": few, "docker.log": oltp})
    guessed = guess(survey(place))
    assert "max_error_share: 0.01" in guessed.text
    assert "1 file with up to 1% of errors: taken, and named in reports" in guessed.found
    assert [run.record.outcome.ok for run in imported(place, tmp_path).runs] == [True, True]
    assert "max_error_share" not in guess(survey(results({"bare.log": oltp}))).text


def test_what_is_left_out_is_told(results: Callable[[Mapping[str, str]], Path]) -> None:
    files = {
        "bare.log": SYSBENCH,
        "docker.log": SYSBENCH,
        "notes.md": SYSBENCH,
        "a.csv": "a,b\n1,2\n",
        "x.dat": "x",
    }
    sentences = guess(survey(results({**files, "pg/bare.txt": PGBENCH}))).found
    assert sentences[0] == "2 reports of sysbench 1.0.20 in 2 files"
    assert "left out: 1 file of pgbench, such as pg/bare.txt: import their folder" in sentences
    assert any(each.startswith("left out: 1 table") for each in sentences)
    assert any(each.startswith("left out: 1 file of no known tool, such as x.dat") for each in sentences)


def test_logs_beside_the_reports_of_the_same_runs_are_left_alone(
    results: Callable[[Mapping[str, str]], Path],
) -> None:
    log = (DATA / "imports" / "pgbench" / "intervals.log").read_text()
    plain = (DATA / "imports" / "pgbench" / "plain.txt").read_text()
    files = {
        f"{sut}/{name}": text
        for sut in ("bare", "docker")
        for name, text in (("run.txt", plain), ("run.4711", log))
    }
    assert guess(survey(results(files))).found[0] == "2 reports of pgbench 15.18 in 2 files"


def test_members_of_an_archive_are_files(tmp_path: Path, results: Callable[[Mapping[str, str]], Path]) -> None:
    place = results({"bare/1.log": sysbench(), "docker/1.log": sysbench(2, 13000)})
    (tmp_path / "packed").mkdir()
    with tarfile.open(tmp_path / "packed" / "all.tar.gz", "w:gz") as archive:
        archive.add(place, "logs")
    made = imported(tmp_path / "packed", tmp_path)
    assert [(run.record.arm, run.record.imported and run.record.imported.file) for run in made.runs] == [
        ("bare", "all.tar.gz/logs/bare/1.log"),
        ("docker", "all.tar.gz/logs/docker/1.log"),
    ]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"one.log": SYSBENCH}, "no part of their names tells arms apart"),
        ({"a.txt": "nothing"}, "no good report"),
        ({"a.csv": "a,b\n1,2\n"}, "no good report .* but 1 table"),
    ],
)
def test_a_directory_that_tells_nothing_is_refused(
    files: Mapping[str, str], why: str, results: Callable[[Mapping[str, str]], Path]
) -> None:
    with pytest.raises(StudyError, match=why):
        guess(survey(results(files)))


def test_nothing_is_imported_before_somebody_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, results: Callable[[Mapping[str, str]], Path]
) -> None:
    monkeypatch.chdir(tmp_path)
    place = str(
        results({f"{sut}{run}.log": sysbench(2, 13900 + run) for sut in ("bare", "docker") for run in (1, 2)})
    )
    result = CliRunner().invoke(app, ["import", place])
    assert result.exit_code == 0, result.output
    assert "nothing is imported yet" in result.output
    assert not Path("results-store").exists()
    mapping = Path("results.import.yaml")
    assert "# guess: its texts name platforms" in mapping.read_text()
    assert CliRunner().invoke(app, ["import", place, "--yes"]).exit_code == 0
    assert len(open_store(Path("results-store")).records()) == 4
    mapping.write_text(mapping.read_text().replace("repetition: row", "repetition: repetition") + "# corrected\n")
    refused = CliRunner().invoke(app, ["import", place, "--yes"])
    assert "another mapping than the guessed one" in str(refused.exception)
    assert mapping.read_text().endswith("# corrected\n")


def test_a_report_that_was_cut_off_after_a_whole_one_does_not_stop_the_import(
    results: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    cut = sysbench().partition("Latency (ms)")[0]
    place = results({"bare.log": sysbench() + cut, "docker.log": sysbench(events=13000) + cut})
    runs = imported(place, tmp_path).runs
    assert [(run.record.arm, run.record.outcome.ok) for run in runs] == [
        ("bare", True),
        ("docker", True),
        ("bare", False),
        ("docker", False),
    ]


def test_a_date_in_a_name_is_one_part_beside_names_of_several_words(
    results: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    platforms = {"metal": 13967, "docker": 13000, "docker-gvisor": 12000}
    place = results(
        {
            f"2020-12-2{n}T14:56:25+0200-{name}-cpu.log": sysbench(events=each)
            for n, (name, each) in enumerate(platforms.items())
        }
    )
    made = imported(place, tmp_path)
    assert {run.record.arm: measured(run.record).operations for run in made.runs} == platforms


def test_a_condition_of_several_words_before_a_date_is_read_whole(
    results: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    names = ["bare-full-sync", "bare-full", "bare-half", "docker-full-sync", "docker-full", "docker-half"]
    place = results(
        {f"res-{name}-2018-04-1{n}-15-46/res.txt": sysbench(events=13000 + n) for n, name in enumerate(names)}
    )
    made = imported(place, tmp_path)
    assert {"-".join(each[1:][::-1]) for each in levels(made)} == set(names)
    assert len(made.runs) == 6


def test_a_file_that_is_no_result_is_left_out_though_the_pattern_fits_it(
    results: Callable[[Mapping[str, str]], Path], tmp_path: Path
) -> None:
    files = {"bare/1.txt": sysbench(), "docker/1.txt": sysbench(events=13000), "notes/1.txt": "to do"}
    made = imported(results(files), tmp_path)
    assert [run.record.arm for run in made.runs] == ["bare", "docker"]
    assert made.left_out == {"platform 'notes'": 1}


def test_a_survey_tells_the_same_of_reports_with_and_without_interval_lines(
    results: Callable[[Mapping[str, str]], Path],
) -> None:
    line = "[ {n}s ] thds: 2 eps: 1396.70 lat (ms,95%): 0.50\n"
    lines = "Threads started!\n" + "".join(line.format(n=n) for n in range(1, 9))
    looked = survey(results({"a.log": SYSBENCH, "b.log": SYSBENCH.replace("Threads started!\n", lines, 1) * 2}))
    plain, long = (file.reports for file in looked.by_parser["sysbench"])
    assert [report.says for report in long] == [plain[0].says] * 2
    assert all(report.measurement and len(report.measurement.windows) <= 2 for report in (*plain, *long))


def test_a_damaged_archive_beside_results_is_told_and_the_others_are_read(
    results: Callable[[Mapping[str, str]], Path],
) -> None:
    place = results({"a.log": SYSBENCH, "old.zip": "PK\x03\x04 cut short"})
    looked = survey(place)
    assert len(looked.by_parser["sysbench"]) == 1
    assert [why for why in looked.unread if "old.zip" in why]


def test_a_packed_tar_is_unpacked_once_for_all_its_members(
    results: Callable[[Mapping[str, str]], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = results({f"{n}.log": sysbench(events=13900 + n) for n in range(20)})
    with tarfile.open(place / "all.tar.gz", "w:gz") as archive:
        for path in sorted(place.glob("*.log"), reverse=True):
            archive.add(path, path.name)
            path.unlink()
    opened: list[object] = []
    whole = tarfile.open

    def counted(*args: Any, **named: Any) -> tarfile.TarFile:
        opened.append(args)
        return whole(*args, **named)

    monkeypatch.setattr(tarfile, "open", counted)
    assert len(survey(place).by_parser["sysbench"]) == 20
    assert len(opened) <= 4
