"""Every study that comes with tare is right at every scale, and says what it departs in."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from tests.unit.shipped import at_every_scale, shipped

from tare.cli.study.plan import as_json
from tare.databases.registry import DATABASES
from tare.knowledge.claim import load_claims
from tare.plan.datasets import data_sets
from tare.plan.estimate import estimate, slow_starts
from tare.plan.expand import expand
from tare.run.rotation.placement import with_cpus
from tare.study.catalogue import studies
from tare.study.model import Study
from tare.study.protocol_spec import RotateSpec
from tare.study.reading.document import read
from tare.study.reading.load import load
from tare.study.registry import installed
from tare.study.rules.levels import is_disk_bound
from tare.study.rules.repetition import instances
from tare.study.values import size_bytes
from tare.workloads.registry import WORKLOADS

SCALES = [(path, scale) for path in studies().values() for scale in read(path).tree["scales"]]


def names() -> dict[Path, str]:
    """Study file → the name that it should have: of a part of a publication, the publication's with its own."""
    return {path: name.replace("/", "-") for name, path in studies().items()}


@pytest.mark.parametrize(
    ("path", "scale"), SCALES, ids=lambda value: getattr(value, "parent", Path(str(value))).name
)
def test_every_scale_can_be_planned(path: Path, scale: str) -> None:
    study = at_every_scale(path)[scale]
    plan = expand(study)
    assert study.name == names()[path]
    control = getattr(study.protocol, "control", True)
    assert len(plan.runs) == (len(study.arms) + control) * study.protocol.blocks
    assert as_json(plan, estimate(plan, data_sets(WORKLOADS)))["estimate"]["total_s"] > 0


PATHS = ("mariadb-paths", "postgresql-paths")
OWN = ("kube-2026", "redis-paths", "unit-costs", *PATHS)
"""Studies that ask a question of tare's own, and replay no publication."""
REPLAYED = [path for name, path in studies().items() if name.partition("/")[0] not in OWN]


@pytest.mark.parametrize("path", REPLAYED, ids=lambda path: path.parent.name)
def test_source_published_figures_and_deviations_are_given(path: Path) -> None:
    study = at_every_scale(path)["full"]
    assert study.source is not None
    assert study.source.url.startswith("https://")
    assert study.deviations
    whole = (path.parents[names()[path] != path.parent.name] / "README.md").read_text()
    assert study.source.url in whole
    if not (study.published or study.quantities):  # what no arm can stand beside is quoted, with its place
        claims = [known.claim for known in load_claims() if known.study == study.name]
        assert claims
        for claim in claims:
            assert f"| {claim.says} | {claim.source.where} |" in whole


@pytest.mark.parametrize("name", OWN)
def test_a_study_of_tare_s_own_says_what_it_cannot_show(name: str) -> None:
    path = studies()[name]
    study = at_every_scale(path)["full"]
    assert study.source is None
    assert not study.published
    readme = (path.parent / "README.md").read_text()
    assert f"**{study.question}**" in readme
    assert "## What it cannot show" in readme


def test_redis_paths_has_five_paths_and_a_cpu_for_each_side() -> None:
    for scale in ("full", "demo", "sustainable"):
        study = shipped("redis-paths", scale)
        paths = {arm.name for arm in study.arms}
        assert paths >= {"bare", "host", "bridge", "published-loopback", "both-on-bridge"}
        assert cpus_of_sides(study) == {("0", "1")}


@pytest.mark.parametrize("name", PATHS)
def test_the_paths_of_a_database_are_its_networks_storages_and_engines_under_three_loads(name: str) -> None:
    for scale in ("full", "demo", "rootless"):
        study = shipped(name, scale)
        assert cpus_of_sides(study) == {("0", "1")}
        assert {arm.levels["load"] for arm in study.arms} == {"read", "rate", "write"}
    docker = {arm.levels["way"] for arm in shipped(name).arms}
    assert docker == {
        "bare", "host", "bridge", "published-loopback", "published-address", "volume", "layer", "tmpfs"
    }  # fmt: skip
    for scale in ("rootless", "networks"):
        assert {arm.settings.sut.engine for arm in shipped(name, scale).arms} == {None, "podman-rootless"}
    assert cpus_of_sides(shipped(name, "networks")) == {("0", "1")}
    cluster = {arm.settings.sut.deployment for arm in shipped(f"{name}/cluster").arms}
    assert cluster == {"bare", "container", "pod"}


@pytest.mark.parametrize("name", [part for path in PATHS for part in (path, f"{path}/cluster")])
def test_eight_blocks_of_a_demo_of_paths_fit_its_cap(name: str) -> None:
    study = shipped(name, "demo")
    assert estimate(expand(study), data_sets(WORKLOADS)).blocks.most >= 8


def cpus_of_sides(study: Study) -> set[tuple[str | None, str | None]]:
    """CPUs of server and client of each arm, by its limits or by the protocol."""
    arms = [with_cpus(arm, study.protocol) if isinstance(study.protocol, RotateSpec) else arm for arm in study.arms]
    return {(arm.settings.sut.limits.cpus, arm.settings.sides["client"].limits.cpus) for arm in arms}


def percona(scale: str) -> Study:
    return shipped("percona-2016", scale)


def test_percona_s_figures_are_those_published() -> None:
    assert {figure.levels["path"]: figure.value for figure in percona("full").published} == {
        "bare": 7100, "published-loopback": 2200, "host": 7100, "bridge": 6300, "shared": 7100,
    }  # fmt: skip
    relative = {figure.levels["path"]: figure.relative for figure in percona("full").published}
    assert relative["published-loopback"] == pytest.approx(-0.690, abs=5e-4)
    assert relative["bridge"] == pytest.approx(-0.113, abs=5e-4)


def test_percona_s_full_scale_is_the_published_size() -> None:
    for arm in percona("full").arms:
        workload = arm.settings.workload
        assert (workload["tables"], workload["table_size"], workload["threads"]) == (8, 10_000_000, 16)
        assert workload["measure_s"] == 1800


def test_percona_s_demo_takes_at_most_five_minutes_on_two_cpus() -> None:
    study = percona("demo")
    expected = estimate(expand(study), data_sets(WORKLOADS))
    assert expected.most_s is not None
    assert expected.most_s <= 300
    assert expected.blocks.most >= 4
    assert cpus_of_sides(study) == {("0", "1")}


def casalicchio(part: str, scale: str) -> Study:
    return shipped(f"casalicchio-2017/{part}", scale)


def test_casalicchio_s_full_scale_is_the_published_size() -> None:
    study = casalicchio("cpu", "full")
    loads = {(arm.settings.workload["cpu_max_prime"], arm.settings.workload["threads"]) for arm in study.arms}
    assert loads == {(primes, threads) for primes in (16000, 32000, 64000, 128000) for threads in (1, 2, 4, 6)}
    quotas = {arm.settings.sut.limits.cpu_quota for arm in study.arms}
    assert quotas == {None, 0.25, 0.5, 0.75}
    sizes = {arm.settings.workload["file_total_size"] for arm in casalicchio("fileio", "full").arms}
    assert sizes == {"16G", "32G", "64G", "128G"}


@pytest.mark.parametrize("part", ["cpu", "fileio"])
def test_casalicchio_runs_ten_times_and_drops_five_samples(part: str) -> None:
    study = casalicchio(part, "full")
    assert study.protocol.blocks == 10
    assert study.quantities is not None
    assert (study.quantities.every_s, study.quantities.trim) == (1.0, 5)
    for arm in study.arms:
        own = study.baseline_of(arm.name)
        baseline = next(other for other in study.arms if other.name == own)
        assert baseline.settings.sut.deployment == "bare"
        assert baseline.settings.workload == arm.settings.workload
        assert baseline.settings.sut.limits == arm.settings.sut.limits


def test_casalicchio_s_files_do_not_fit_into_the_page_cache() -> None:
    for arm in casalicchio("fileio", "full").arms:
        memory, size = arm.settings.sut.limits.memory, arm.settings.workload["file_total_size"]
        assert memory == "4G"
        assert int(size.removesuffix("G")) >= 4 * 4
    for arm in casalicchio("fileio", "demo").arms:
        assert arm.settings.workload["file_extra_flags"] == "direct"


@pytest.mark.parametrize("part", ["cpu", "fileio"])
def test_casalicchio_s_demo_takes_at_most_eight_minutes_on_two_cpus(part: str) -> None:
    study = casalicchio(part, "demo")
    expected = estimate(expand(study), data_sets(WORKLOADS))
    assert expected.most_s is not None
    assert expected.most_s <= 8 * 60
    assert expected.blocks.most >= 3


def grambow(scale: str) -> Study:
    return shipped("grambow-2018", scale)


def test_grambow_s_full_scale_is_the_720_runs_that_were_published() -> None:
    study = grambow("full")
    runs = expand(study).runs
    assert len(runs) == 720
    assert set(Counter(run.arm for run in runs).values()) == {5}
    assert all(one.arm != other.arm for one, other in pairwise(runs))
    sizes = Counter((arm.levels["machine"], arm.settings.workload["threads"]) for arm in study.arms)
    assert sizes == {(f"m3.{size}", threads): 24 for size, many in SIZES.items() for threads in many}
    assert {len(levels) for levels in (study.factors["compaction"], study.factors["key_cache"])} == {3, 2}


SIZES = {"medium": (10, 25, 50), "large": (30, 75, 150)}


def test_grambow_s_arms_have_the_published_loads_and_limits() -> None:
    wanted = {"m3.medium": (3_000_000, 1.0, "3840M"), "m3.large": (9_000_000, 2.0, "7680M")}
    for arm in grambow("full").arms:
        sut, client, workload = arm.settings.sut, arm.settings.sides["client"], arm.settings.workload
        limits = [(side.limits.cpu_quota, side.limits.memory) for side in (sut, client)]
        results = [(workload["operations"], *each) for each in limits]
        assert results == [wanted[arm.levels["machine"]]] * 2
        assert (workload["core_workload"], workload["records"]) == ("a", 100_000)
        assert arm.levels["compaction"][0] in workload["properties"]["cassandra.tableoptions"]
        assert (sut.deployment, client.deployment) == tuple(
            {"bare": "bare", "docker": "container"}[arm.levels[side]] for side in ("sut", "client")
        )


def test_grambow_s_demo_runs_all_four_setups_in_at_most_a_quarter_of_an_hour() -> None:
    study = grambow("demo")
    assert len(study.arms) == 4
    expected = estimate(expand(study), data_sets(WORKLOADS), slow_starts(DATABASES, WORKLOADS))
    assert expected.total_s is not None
    assert expected.total_s <= 15 * 60


def test_bth_s_full_scale_is_ten_iterations_of_twenty_minutes_in_buckets_of_thirty_seconds() -> None:
    study = shipped("bth-thesis")
    assert len(expand(study).runs) == 2 * 3 * 2 * 10
    loads = {(arm.settings.workload["command"], arm.settings.workload["threads"]) for arm in study.arms}
    assert loads == {(command, threads) for command in ("mixed", "read", "write") for threads in (450, 150)}
    for arm in study.arms:
        assert (arm.settings.workload["measure_s"], arm.settings.workload["window_s"]) == (1200, 30)
        assert arm.settings.workload["ratio"] == {"read": 3, "write": 1}
        assert {name: spec.interval_s for name, spec in arm.settings.monitors.items()} == {"sar": 30, "iostat": 30}


def test_grambow_s_figures_stand_beside_a_client_behind_a_masquerade_too() -> None:
    pair, one = grambow("pair-demo"), grambow("demo")

    def figures(study: Study, docker: str) -> dict[tuple[bool, str, str], float | None]:
        return {
            (each.levels["client"] == docker, each.levels["sut"], each.metric): each.relative
            for each in study.published
            if each.levels["machine"] == "m3.medium" and each.levels["threads"] == "t10"
        }

    assert figures(pair, "masqueraded") == figures(one, "docker")
    assert len(figures(pair, "masqueraded")) == 6
    value = {each.levels["client"] for each in pair.published}
    assert value == {"bare", "masqueraded"}


SEYBOLD = ("full", "full-memory", "demo", "demo-memory", "pair-demo", "demo-machines")


DISK_BOUND = ("full", "demo")


def seybold(scale: str) -> Study:
    return shipped("seybold-2018", scale)


@pytest.mark.parametrize("scale", SEYBOLD)
def test_seybold_writes_and_then_reads_on_one_server(scale: str) -> None:
    for filling, asking in instances(seybold(scale)):
        assert filling.levels["model"] == asking.levels["model"]
        inserts, reads = filling.settings.workload, asking.settings.workload
        assert inserts["properties"]["insertproportion"] == 1
        assert reads["core_workload"] == "b"  # 95 % reads, 5 % updates
        assert reads["records"] == inserts["records"] + inserts["operations"]


RATIOS = {"full": 2.5, "demo": 2.5, "pair-demo": 0.25}
"""Of data to memory, where that is not half."""


@pytest.mark.parametrize("scale", SEYBOLD)
def test_seybold_s_data_have_the_ratio_to_the_memory_that_their_scale_tells(scale: str) -> None:
    for filling, _ in instances(seybold(scale)):
        settings = filling.settings
        memory = size_bytes(settings.sut.limits.memory or "")
        record = 10 * settings.workload["properties"].get("fieldlength", 100)
        records = settings.workload["records"] + settings.workload["operations"]
        assert records * record / memory == pytest.approx(RATIOS.get(scale, 0.5), rel=0.1)
        pool = size_bytes(str(settings.sut.settings["innodb_buffer_pool_size"]))
        assert pool == (96 << 20 if scale == "demo" else 0.75 * memory)


@pytest.mark.parametrize("scale", SEYBOLD)
def test_seybold_means_the_disk_to_set_the_rate_where_data_are_larger_than_the_memory(scale: str) -> None:
    study = seybold(scale)
    assert {is_disk_bound(study, arm.name) for arm in study.arms} == {scale in DISK_BOUND}
    assert study.published_by == "min-max-mean"
    slow = {arm.settings.sut.limits.disk_iops for arm in study.arms}
    assert slow == {200 if scale == "demo" else None}


@pytest.mark.parametrize("scale", ["full", "full-memory"])
def test_seybold_s_full_scale_has_the_published_limits_and_repetitions(scale: str) -> None:
    study = seybold(scale)
    assert study.protocol.blocks == 10
    for arm in study.arms:
        assert (arm.settings.sut.limits.cpu_quota, arm.settings.sut.limits.memory) == (4, "4G")


def test_seybold_s_models_differ_in_container_and_storage_alone() -> None:
    arms = [filling for filling, _ in instances(seybold("full"))]
    fields = {arm.levels["model"]: (arm.settings.sut.deployment, arm.settings.sut.storage.kind) for arm in arms}
    assert fields == {
        "bare": ("bare", "bind"),
        "P-C-H": ("container", "bind"),
        "P-C-L": ("container", "layer"),
        "VM-L": ("vm", "bind"),
        "VM-C-H": ("vm-container", "bind"),
        "VM-C-L": ("vm-container", "layer"),
    }


def test_seybold_s_machines_have_a_demo_of_their_own() -> None:
    models = {scale: {arm.levels["model"] for arm in seybold(scale).arms} for scale in SEYBOLD}
    assert models["demo"] == models["demo-memory"] == models["pair-demo"] == {"bare", "P-C-H", "P-C-L"}
    assert models["demo-machines"] == {"bare", "VM-L", "VM-C-H", "VM-C-L"}
    assert models["full"] == models["demo"] | models["demo-machines"]


@pytest.mark.parametrize(("scale", "of_whole"), [("full", "full"), ("demo", "demo-machines")])
def test_seybold_s_machines_are_those_of_the_whole_study_against_a_machine_alone(scale: str, of_whole: str) -> None:
    """Alike but for what they are compared with."""
    part = shipped("seybold-2018/machines", scale)
    placed = [
        {
            (arm.levels["model"], arm.levels["load"]): arm.settings
            for arm in study.arms
            if arm.levels["model"].startswith("VM-")
        }
        for study in (part, seybold(of_whole))
    ]
    assert placed[0] == placed[1]
    assert len(placed[0]) == 6
    assert part.baseline_levels == {"model": "VM-L"}


def test_seybold_s_figures_of_machines_are_those_published() -> None:
    part = shipped("seybold-2018/machines")
    fields = {(each.levels["model"], each.levels["load"]): each.relative for each in part.published}
    assert fields == {("VM-C-H", "write-heavy-10G"): -0.06, ("VM-C-H", "read-heavy-10G"): -0.13}


@pytest.mark.parametrize("database", ["cassandra", "postgresql", "redis"])
def test_seybold_takes_another_database_by_one_line(database: str, tmp_path: Path) -> None:
    text = studies()["seybold-2018"].read_text()
    line = "    only: {database: mariadb, load: [write-heavy-10G, read-heavy-10G]}\n"
    assert text.count(line) == 1
    other = tmp_path / "study.yaml"
    other.write_text(text.replace(line, line.replace("mariadb", database)))
    assert {arm.settings.sut.database for arm in load(other, installed()).arms} == {database}
