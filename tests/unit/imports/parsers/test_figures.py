"""Known answers of the parsers: the figures that each report says, and none that it does not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tare.imports.contents import text_of
from tare.imports.parsers import Report
from tare.imports.parsers.registry import PARSERS
from tare.record.measurement import Window
from tare.record.run_record import to_tree

DATA = Path(__file__).parents[3] / "data" / "imports"


def reports(name: str, file: str, max_error_share: float = 0.0) -> list[Report]:
    text = text_of((DATA / name / file).read_bytes())
    assert text is not None
    return list(PARSERS[name].reports(text, max_error_share))


def measured(report: Report) -> Mapping[str, Any]:
    """As a store has it."""
    assert report.measurement is not None, report.failure
    return to_tree(report.measurement)


def known(report: Report) -> dict[str, float]:
    """Latencies in ms that are known."""
    latency = measured(report)["latency"]
    names = ("mean", "min", "max", "p50", "p95", "p99")
    return {each: latency[f"{each}_ms"] for each in names if latency[f"{each}_ms"] is not None}


def kinds(report: Report, figure: str = "mean_ms") -> dict[str, float | None]:
    return {name: each["latency"][figure] for name, each in measured(report)["by_operation"].items()}


def test_pgbench_gives_rate_mean_and_the_windows_that_it_prints() -> None:
    (report,) = reports("pgbench", "progress.txt")
    assert measured(report)["throughput_per_s"] == 4667.014661
    assert known(report) == {"mean": 0.847}
    assert [each["throughput_per_s"] for each in measured(report)["windows"]] == [4861.4, 4687.2, 4521.8, 4646.3]
    assert (report.says["clients"], report.says["jobs"], report.says["version"]) == ("4", "2", "15.18")
    assert measured(report)["latency"]["blind_to_stalls"] is True


def test_pgbench_with_a_rate_times_from_the_schedule() -> None:
    (report,) = reports("pgbench", "rate.txt")
    assert measured(report)["latency"]["timed_from"] == "intended-send"
    assert measured(report)["details"] == {"schedule_lag_mean_ms": 0.236}


def test_pgbench_runs_of_a_loop_are_runs() -> None:
    runs = reports("pgbench", "loop.txt")
    assert [(each.says["clients"], measured(each)["operations"]) for each in runs] == [
        ("1", 52501),
        ("2", 88185),
        ("4", 65434),
    ]


def test_pgbench_scripts_have_latencies_of_their_own() -> None:
    (report,) = reports("pgbench", "scripts.txt")
    assert kinds(report) == {"select-only": 0.079, "simple-update": 0.4}


@pytest.mark.parametrize(
    ("old", "rate"),
    [
        (
            "tps = 85.18 (including connections establishing)\ntps = 85.29 (excluding connections establishing)",
            85.29,
        ),
        ("tps = 85.29 (without initial connection time)", 85.29),
        ("tps = 80.0 (including reconnection times)", 80.0),
    ],
)
def test_pgbench_of_every_version_has_a_rate(old: str, rate: float) -> None:
    head = "transaction type: TPC-B (sort of)\nnumber of transactions actually processed: 1000/1000\n"
    (report,) = PARSERS["pgbench"].reports(f"{head}latency average: 11.7 ms\n{old}\n", 0.0)
    assert measured(report)["throughput_per_s"] == rate
    assert known(report) == {"mean": 11.7}


def test_pgbench_counts_what_failed_or_was_skipped() -> None:
    text = (DATA / "pgbench" / "rate.txt").read_text()
    text = text.replace("skipped: 0 (0.000%)", "skipped: 91 (10.1%)")
    (report,) = PARSERS["pgbench"].reports(text, 0.0)
    assert report.failure == "91 of 900 transactions failed or were skipped"
    (report,) = PARSERS["pgbench"].reports(text, 0.2)
    assert measured(report)["errors"] == 91


def test_pgbench_with_a_client_that_gave_up_is_no_good_run() -> None:
    text = (DATA / "pgbench" / "plain.txt").read_text()
    aborted = "pgbench: error: client 1 aborted in command 5 (SQL) of script 0; perhaps the backend died\n"
    (report,) = PARSERS["pgbench"].reports(text.replace("transaction type", f"{aborted}transaction type", 1), 0.0)
    assert "client 1 aborted" in (report.failure or "")


def test_a_log_of_transactions_agrees_with_the_report_of_its_run() -> None:
    (log,) = reports("pgbench", "transactions.log")
    (report,) = PARSERS["pgbench"].reports((DATA / "pgbench" / "log.report").read_text(), 0.0)
    assert measured(log)["operations"] == measured(report)["operations"] == 308
    assert measured(log)["throughput_per_s"] == pytest.approx(measured(report)["throughput_per_s"], rel=2e-3)
    assert known(log)["mean"] == pytest.approx(known(report)["mean"], abs=5e-4)
    assert (known(log)["p50"], known(log)["p95"], known(log)["max"]) == pytest.approx((0.804, 3.822, 8.881))
    assert [each["throughput_per_s"] for each in measured(log)["windows"]] == [104.0, 117.0]


def test_a_sample_of_transactions_gives_latencies_but_no_rate() -> None:
    (report,) = reports("pgbench", "sample.log")
    assert measured(report)["throughput_per_s"] is None
    assert known(report)["p50"] > 0


def test_the_log_of_one_thread_of_several_is_refused() -> None:
    lines = (DATA / "pgbench" / "transactions.log").read_text().splitlines(keepends=True)
    (report,) = PARSERS["pgbench"].reports("".join(line for line in lines if line.startswith("1 ")), 0.0)
    assert "one thread of several" in (report.failure or "")


def test_a_log_of_intervals_gives_the_rate_of_its_whole_intervals() -> None:
    (report,) = reports("pgbench", "intervals.log")
    assert measured(report)["throughput_per_s"] == (5334 + 5709 + 5614 + 6187) / 4
    assert known(report) == pytest.approx({"mean": 7946644 / 22844 / 1e3, "min": 0.116, "max": 31.478})
    assert measured(report)["latency"]["blind_to_stalls"] is True
    (report,) = reports("pgbench", "intervals-rate.log")
    assert measured(report)["latency"]["blind_to_stalls"] is False


def test_logs_of_intervals_of_all_threads_add_up() -> None:
    log = (DATA / "pgbench" / "intervals.log").read_text()
    (one,), (both,) = (PARSERS["pgbench"].reports(text, 0.0) for text in (log, log * 2))
    assert measured(both)["throughput_per_s"] == 2 * measured(one)["throughput_per_s"]
    assert known(both) == known(one)


def test_each_test_of_redis_benchmark_is_a_run() -> None:
    runs = {report.says["test"]: report for report in reports("redis-benchmark", "csv.txt")}
    assert measured(runs["GET"])["throughput_per_s"] == 58479.53
    assert known(runs["GET"]) == {
        "mean": 0.509,
        "min": 0.12,
        "max": 6.655,
        "p50": 0.287,
        "p95": 2.343,
        "p99": 4.295,
    }
    assert "LRANGE_100 (first 100 elements)" in runs
    text = reports("redis-benchmark", "text.txt")
    assert [(each.says["test"], measured(each)["throughput_per_s"], each.line) for each in text] == [
        ("SET", 94339.62, 1),
        ("GET", 90909.09, 48),
    ]
    assert known(text[0])["p95"] == 0.103
    quiet = reports("redis-benchmark", "q.txt")
    assert (measured(quiet[0])["throughput_per_s"], known(quiet[0])) == (83682.01, {"p50": 0.303})
    (bare,) = PARSERS["redis-benchmark"].reports('"SET","97560.98"\n', 0.0)
    assert (measured(bare)["throughput_per_s"], known(bare)) == (97560.98, {})


def test_whole_milliseconds_of_old_redis_benchmark_are_no_percentiles() -> None:
    first, second = reports("redis-benchmark", "old.txt")
    assert (measured(first)["throughput_per_s"], measured(second)["throughput_per_s"]) == (80000.0, 40000.0)
    assert known(first) == {}


def test_a_test_of_redis_benchmark_that_did_not_end_is_a_failed_run() -> None:
    text = (DATA / "redis-benchmark" / "q.txt").read_bytes().decode()
    runs = list(PARSERS["redis-benchmark"].reports(text[: text.index("GET: 105263.16")], 0.0))
    assert [(each.says["test"], each.failure) for each in runs] == [("SET", None), ("GET", "the test did not end")]


def test_redis_benchmark_with_threads_has_a_coarse_rate() -> None:
    assert all("quarter-seconds" in report.distortions for report in reports("redis-benchmark", "threads.txt"))
    assert not any("quarter-seconds" in report.distortions for report in reports("redis-benchmark", "text.txt"))


def test_memtier_gives_totals_and_kinds() -> None:
    (report,) = reports("memtier", "plain.txt")
    assert measured(report)["throughput_per_s"] == 198.57
    assert known(report) == {"mean": 0.60124, "p50": 0.151, "p99": 4.447}
    assert kinds(report) == {"set": 0.36905, "get": 0.62561}
    (report,) = reports("memtier", "commands.json")
    assert (measured(report)["throughput_per_s"], measured(report)["operations"]) == (66371.09, 10000)
    assert kinds(report, "p99_ms") == {"lpush": 0.135, "lrange": 0.135}


def test_a_mean_of_zero_in_the_totals_of_memtier_is_taken_from_its_sums() -> None:
    (report,) = reports("memtier", "plain.json")
    assert known(report)["mean"] == pytest.approx(30000 / 134533)
    assert [each["throughput_per_s"] for each in measured(report)["windows"]] == [48888, 43781, 41854]


def test_several_runs_of_memtier_are_read_as_their_average() -> None:
    (text,), (tree,) = reports("memtier", "runs.txt"), reports("memtier", "runs.json")
    assert text.says["runs"] == tree.says["runs"] == "2"
    assert measured(text)["throughput_per_s"] == measured(tree)["throughput_per_s"] == 30402.98
    assert "p50" not in known(tree)  # its JSON has 0.007 where its table has 0.119


def test_jobs_of_fio_that_ran_together_are_one_run() -> None:
    (report,) = reports("fio", "json-mix.txt")
    assert measured(report)["operations"] == 126426
    assert measured(report)["throughput_per_s"] == pytest.approx(126426 / 2.001)
    assert "p95" not in known(report)  # percentiles of parts do not add up
    assert (report.says["jobs"], report.says["mode"], report.says["block-size"]) == ("2", "randrw", "4k")
    runs = reports("fio", "json.txt")
    assert [each.says["job"] for each in runs] == ["randread", "randwrite"]
    assert known(runs[0])["p95"] == pytest.approx(0.06016)


def test_groups_of_fio_that_overlapped_are_one_run() -> None:
    text = (DATA / "fio" / "json.txt").read_text()
    assert text.count('"elapsed" : 5') == 2
    (report,) = PARSERS["fio"].reports(text.replace('"elapsed" : 5', '"elapsed" : 3'), 0.0)
    assert measured(report)["throughput_per_s"] == pytest.approx(21990.504748 + 299035.982009)


def test_text_of_fio_gives_the_rate_of_its_counts_not_the_rounded_one() -> None:
    first, second = reports("fio", "text.txt")
    assert measured(first)["throughput_per_s"] == pytest.approx(47554 / 2.001)
    assert known(first) == pytest.approx(
        {"mean": 0.04126, "min": 0.019, "max": 4.651, "p50": 0.038, "p95": 0.05, "p99": 0.075}
    )
    assert measured(second)["throughput_per_s"] == pytest.approx(1113967 / 2.001)
    (group,) = reports("fio", "text-group.txt")
    assert kinds(group, "p95_ms") == pytest.approx({"read": 0.073, "write": 0.006112})
    (old,) = reports("fio", "old.txt")
    assert measured(old)["throughput_per_s"] == pytest.approx(262144 / 28.901)
    assert known(old)["p95"] == pytest.approx(3.3)
    assert (old.says["version"], old.says["depth"]) == ("2.2.10", "16")


def test_terse_output_of_fio_gives_both_directions() -> None:
    read, write = reports("fio", "terse3.txt")
    assert measured(read)["throughput_per_s"] == 20259.0
    assert known(write) == pytest.approx(
        {"mean": 0.001104477, "max": 1.753, "p50": 0.001, "p95": 0.001, "p99": 0.001}
    )
    assert [measured(each)["throughput_per_s"] for each in reports("fio", "terse5.txt")] == [20653.0, 278914.0]
    assert all("version 2" in (each.failure or "") for each in reports("fio", "terse2.txt"))


def test_text_of_fio_that_lacks_its_status_is_cut_short() -> None:
    text = (DATA / "fio" / "text-mix.txt").read_text()
    (report,) = PARSERS["fio"].reports(text[: text.index("Run status group")], 0.0)
    assert "cut short" in (report.failure or "")


def test_tests_of_sysbench_without_a_database_have_rates_of_their_own() -> None:
    rates = {name: measured(reports("sysbench", f"{name}.txt")[0]) for name in ("cpu", "fileio", "memory", "mutex")}
    assert rates["fileio"]["throughput_per_s"] == pytest.approx(68123.33 + 45415.56)
    assert (rates["memory"]["throughput_per_s"], rates["memory"]["details"]) == (6597401.92, {"mib_per_s": 6442.78})
    assert rates["cpu"]["throughput_per_s"] == pytest.approx(13967 / 3.0033)
    assert rates["memory"]["latency"]["p95_ms"] is None  # printed as 0.00
    assert rates["mutex"]["latency"]["max_ms"] == 308.84


def test_new_orders_of_hammerdb_are_a_rate() -> None:
    runs = reports("hammerdb", "two.log")
    assert [(each.says["users"], measured(each)["throughput_per_s"]) for each in runs] == [
        ("4", 162.0),
        ("8", 250.0),
    ]
    (old,) = reports("hammerdb", "old.log")
    assert measured(old)["throughput_per_s"] == pytest.approx(6461 / 60)
    assert (old.says["database"], old.says["users"]) == ("SQL Server", "4")
    failed = (DATA / "hammerdb" / "old.log").read_text().replace("FINISHED SUCCESS", "FINISHED FAILED")
    (report,) = PARSERS["hammerdb"].reports(failed, 0.0)
    assert "FINISHED FAILED" in (report.failure or "")


def test_a_summary_of_benchbase_is_a_run() -> None:
    (report,) = reports("benchbase", "tpcc.summary.json")
    assert measured(report)["throughput_per_s"] == 79.99988911
    assert known(report) == {"mean": 50.0, "min": 1.9, "max": 350.0, "p50": 42.0, "p95": 90.0, "p99": 150.0}
    assert (report.says["terminals"], "version" in report.says) == ("4", False)
    assert report.distortions == ("failures-counted",)


def test_a_time_profile_of_hammerdb_gives_latencies_of_its_summary() -> None:
    (report,) = reports("hammerdb", "profile.log")
    assert measured(report)["throughput_per_s"] == 162.0
    kinds = measured(report)["by_operation"]
    assert {name: (each["operations"], each["latency"]["p95_ms"]) for name, each in kinds.items()} == {
        "neword": (None, 104.921),
        "payment": (None, 70.415),
    }
    assert kinds["neword"]["latency"]["mean_ms"] == 36.332
    profile = (DATA / "hammerdb" / "profile.log").read_text().partition("COMPLETE\n")[2]
    (alone,) = PARSERS["hammerdb"].reports(profile, 0.0)
    assert alone.failure == "a time profile without its run's log: append it there"


def test_each_phase_of_benchbase_transactions_is_a_run() -> None:
    (report,) = reports("benchbase", "tpcc.raw.csv")
    figures = measured(report)
    assert figures["duration_s"] == pytest.approx(3.9 + 0.0139)
    assert figures["throughput_per_s"] == pytest.approx(40 / 3.9139)
    assert [each["throughput_per_s"] for each in figures["windows"]] == [10.0, 10.0, 10.0]
    kinds = {
        name: (each["operations"], each["latency"]["p50_ms"]) for name, each in figures["by_operation"].items()
    }
    assert kinds == {"new-order": (20, 20.0), "payment": (20, pytest.approx(11.9))}
    text = (DATA / "benchbase" / "tpcc.raw.csv").read_text()
    later = text.partition("\n")[2].replace(",0\n", ",1\n")
    assert [each.says["phase"] for each in PARSERS["benchbase"].reports(text + later, 0.0)] == ["0", "1"]
    (broken,) = PARSERS["benchbase"].reports(text.replace("20000", "soon", 1), 0.0)
    assert broken.failure == "line 2 is no transaction of BenchBase"


def test_a_report_that_was_pasted_without_its_last_line_end_is_whole() -> None:
    text = (DATA / "sysbench" / "cpu.txt").read_text().rstrip("\n")
    (report,) = PARSERS["sysbench"].reports(text, 0.0)
    assert measured(report) == measured(reports("sysbench", "cpu.txt")[0])
    (cut,) = PARSERS["sysbench"].reports(text.rpartition("/")[0], 0.0)
    assert "cut short" in (cut.failure or "")


def test_numbers_that_fio_2_shortens_are_thousands() -> None:
    text = (DATA / "fio" / "old.txt").read_text().replace("max=21500", "max=4935.4K")
    (report,) = PARSERS["fio"].reports(text, 0.0)
    assert measured(report)["latency"]["max_ms"] == pytest.approx(4935.4)


@pytest.mark.parametrize(
    ("reads", "writes", "queries"), [("7", "0", "read"), ("7", "9", "read and write"), ("0", "9", "write")]
)
def test_sysbench_says_which_queries_a_test_did(reads: str, writes: str, queries: str) -> None:
    text = (DATA.parent / "sysbench" / "closed.stdout").read_text()
    text = re.sub(r"( read: +)\d+", rf"\g<1>{reads}", re.sub(r"( write: +)\d+", rf"\g<1>{writes}", text))
    (report,) = PARSERS["sysbench"].reports(text, 1.0)
    assert report.says["queries"] == queries


@pytest.mark.parametrize(
    ("line", "window"),
    [
        (
            (
                "[ 10s ] thds: 4 tps: 50.50 qps: 1010.00 (r/w/o: 707.00/202.00/101.00) lat (ms,95%): 20.37 "
                "err/s: 0.10 reconn/s: 0.20"
            ),
            Window(10.0, 50.5, 20.37, 0.1, 0.2, 1010.0),
        ),
        (
            (
                "[ 10s] threads: 4, tps: 50.50, reads: 707.00, writes: 202.00, response time: 20.37ms (95%), "
                "errors: 0.10, reconnects:  0.20"
            ),
            Window(10.0, 50.5, 20.37, 0.1, 0.2),
        ),
        (
            "[  10s] threads: 4, tps: 50.50, reads/s: 707.00, writes/s: 202.00, response time: 20.37ms (99%)",
            Window(10.0, 50.5),
        ),
        ("[ 10s ] thds: 4 eps: 0.00 lat (ms,95%): 0.00", Window(10.0, 0.0)),
    ],
)
def test_each_form_of_an_interval_line_of_sysbench_is_a_window(line: str, window: Window) -> None:
    text = (
        (DATA / "sysbench" / "cpu.txt").read_text().replace("Threads started!\n", f"Threads started!\n{line}\n", 1)
    )
    (report,) = PARSERS["sysbench"].reports(text, 0.0)
    assert report.whole is not None
    assert report.whole.windows[0] == window


def test_interval_lines_of_two_forms_in_one_log_are_windows_in_their_order() -> None:
    forms = (
        "[ 1s ] thds: 4 tps: 10.00 qps: 20.00 (r/w/o: 20/0/0) lat (ms,95%): 1.50 err/s: 0.00 reconn/s: 0.00",
        "[ 1s ] queue length: 3, concurrency: 4",
        "[ 2s ] thds: 4 eps: 11.00 lat (ms,95%): 1.60",
    )
    text = (DATA / "sysbench" / "cpu.txt").read_text().replace("Threads started!\n", "\n".join(forms) + "\n", 1)
    (report,) = PARSERS["sysbench"].reports(text, 0.0)
    assert report.whole is not None
    assert report.whole.windows[:2] == (Window(1.0, 10.0, 1.5, 0.0, 0.0, 20.0), Window(2.0, 11.0, 1.6))
