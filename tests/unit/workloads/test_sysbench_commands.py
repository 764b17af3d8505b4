"""What sysbench is called with."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tare.databases import Secrets
from tare.deployments import Endpoint
from tare.errors import StudyError
from tare.workloads import Target
from tare.workloads.registry import WORKLOADS
from tare.workloads.sysbench.parameters import SysbenchParameters
from tare.workloads.sysbench.sysbench import Sysbench

WORKLOAD = Sysbench()
TARGET = Target("mariadb", Endpoint("172.20.0.2", 33060), Secrets("tare", "0123456789abcdef"))


def parameters(**changes: Any) -> SysbenchParameters:
    asked: dict[str, Any] = {"tables": 8, "threads": 16, "warmup_s": 2, "measure_s": 30, "window_s": 10, "seed": 5}
    return SysbenchParameters.model_validate({**asked, **changes})


def test_measuring_passes_every_option_on() -> None:
    command = WORKLOAD.measure(parameters(), TARGET, "/run/tare")
    assert command.argv == (
        "sysbench",
        "--config-file=/run/tare/sysbench.cnf",
        "--db-driver=mysql",
        "--mysql-host=172.20.0.2",
        "--mysql-port=33060",
        "--mysql-db=tare",
        "--threads=16",
        "--time=30",
        "--events=0",
        "--rate=0",
        "--report-interval=10",
        "--percentile=95",
        "--histogram=on",
        "--forced-shutdown=30",
        "--rand-seed=5",
        "--db-ps-mode=auto",
        "--tables=8",
        "--table_size=10000",
        "--auto_inc=on",
        "--create_secondary=on",
        "--mysql_storage_engine=innodb",
        "--rand-type=special",
        "--rand-spec-iter=12",
        "--rand-spec-pct=1",
        "--rand-spec-res=75",
        "--rand-pareto-h=0.2",
        "--point_selects=10",
        "--simple_ranges=1",
        "--sum_ranges=1",
        "--order_ranges=1",
        "--distinct_ranges=1",
        "--range_selects=on",
        "--range_size=100",
        "--index_updates=1",
        "--non_index_updates=1",
        "--delete_inserts=1",
        "--skip_trx=off",
        "--secondary=off",
        "oltp_read_only",
        "run",
    )
    assert command.env == {"LC_ALL": "C"}
    assert command.timeout_s == 30 + 30 + 60


def test_the_password_is_in_the_configuration_file_alone() -> None:
    own = parameters()
    warm_up = WORKLOAD.warm_up(own, TARGET, "/run/tare")
    assert warm_up is not None
    for command in (WORKLOAD.load(own, TARGET, "/run/tare"), warm_up, WORKLOAD.measure(own, TARGET, "/run/tare")):
        assert not any(TARGET.secrets.password in word for word in (*command.argv, *command.env.values()))
        assert command.files["sysbench.cnf"] == "mysql-user=tare\nmysql-password=0123456789abcdef\n"


@pytest.mark.parametrize("password", ["a b", "a\nmysql-host=elsewhere", "a#b", "a,b", ""])
def test_a_password_that_the_file_would_not_keep_is_a_fault(password: str) -> None:
    target = Target("mariadb", TARGET.endpoint, Secrets("tare", password))
    with pytest.raises(ValueError, match="letters and digits"):
        WORKLOAD.measure(parameters(), target, "/run/tare")


def test_loading_uses_a_thread_a_table_at_most_and_our_script() -> None:
    command = WORKLOAD.load(parameters(tables=8, threads=16), TARGET, "/run/tare")
    assert "--threads=8" in command.argv
    assert command.argv[-2:] == ("/run/tare/sysbench_load.lua", "load")
    assert 'require("oltp_common")' in command.files["sysbench_load.lua"]
    assert "--threads=2" in WORKLOAD.load(parameters(threads=2), TARGET, "/run/tare").argv


def test_a_larger_load_may_take_longer_but_not_for_ever() -> None:
    small = WORKLOAD.load(parameters(table_size=10_000), TARGET, "/run/tare").timeout_s
    large = WORKLOAD.load(parameters(table_size=10_000_000), TARGET, "/run/tare").timeout_s
    assert small == 340
    assert large == 300 + 80_000_000 / 2000


def test_the_warm_up_is_the_same_mix_with_other_questions() -> None:
    own = parameters()
    warm_up, measure = WORKLOAD.warm_up(own, TARGET, "/r"), WORKLOAD.measure(own, TARGET, "/r")
    assert warm_up is not None
    differing = set(warm_up.argv) ^ set(measure.argv)
    assert differing == {"--time=2", "--time=30", "--rand-seed=6", "--rand-seed=5"}
    assert WORKLOAD.warm_up(parameters(warmup_s=0), TARGET, "/r") is None


def test_the_largest_seed_has_another_for_its_warm_up() -> None:
    warm_up = WORKLOAD.warm_up(parameters(seed=2**31 - 1), TARGET, "/r")
    assert warm_up is not None
    assert "--rand-seed=1" in warm_up.argv


def test_a_rate_is_passed_on() -> None:
    assert "--rate=500" in WORKLOAD.measure(parameters(rate=500), TARGET, "/r").argv


def test_the_data_set_is_what_fills_the_tables_and_nothing_else() -> None:
    data = WORKLOAD.dataset(parameters())
    assert data["tables"] == 8
    same = {"script": "oltp_read_write", "threads": 2, "seed": 9, "measure_s": 5, "window_s": 1, "point_selects": 3}
    assert WORKLOAD.dataset(parameters(**same)) == data
    for name, value in {
        "tables": 7,
        "table_size": 5,
        "rand_type": "uniform",
        "auto_inc": False,
        "create_secondary": False,
        "storage_engine": "aria",
    }.items():
        assert WORKLOAD.dataset(parameters(**{name: value})) != data


@pytest.mark.parametrize(
    "changes",
    [
        {"measure_s": 1.5},
        {"warmup_s": 0.5},
        {"window_s": 0.5},
        {"window_s": 31},
        {"threads": 0},
        {"tables": 0},
        {"rate": 0},
        {"seed": 0},
        {"seed": 2**31},
        {"script": "oltp_read"},
        {"storage_engine": "innodb --x"},
        {"no_such": 1},
        {"threads": "16"},
    ],
)
def test_parameters_that_sysbench_could_not_keep_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        parameters(**changes)


def test_a_database_without_a_driver_is_refused() -> None:
    with pytest.raises(StudyError, match="does not support fake"):
        WORKLOAD.measure(parameters(), Target("fake", TARGET.endpoint, TARGET.secrets), "/r")


def test_it_is_registered() -> None:
    assert isinstance(WORKLOADS["sysbench"], Sysbench)
