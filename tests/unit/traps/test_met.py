"""Traps of planned arms by their settings, and of recorded arms by what sets them apart from their baseline."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic
from tests.unit.shipped import at_every_scale, shipped

from tare.analyze.validity import RULES
from tare.record.host_facts import HostFacts
from tare.record.observation import Observation, Parity
from tare.record.run_record import Outcome, RunRecord
from tare.record.usage import Saturation, SaturationOfSides, Usage
from tare.report.content import build_report
from tare.report.findings_file import file_of
from tare.report.sections.sentences import validity
from tare.study.catalogue import studies
from tare.study.reading.load import loads
from tare.study.registry import installed
from tare.traps.met import host_traps, planned_traps, recorded_traps, traps_apart, traps_behind
from tare.traps.of_run import facts_of_run
from tare.traps.trap import load_traps

STUDY = """
format: 1
name: mine
question: What does it cost?
sut:
  image: mariadb
  database: mariadb
  deployment: container
  network: host
  limits: {memory: 512M}
  settings: {innodb_buffer_pool_size: SIZE}
client: {image: sysbench, deployment: bare, network: host}
workload: {name: sysbench, script: oltp_read_only, tables: 1, table_size: 1000, threads: 2, measure_s: 10}
factors:
  path:
    sets: [sut.network, sut.deployment]
    levels: {host: {}, port: {sut.network: published-loopback}, bare: {sut.deployment: bare}}
baseline: host
"""


def named(text: str) -> dict[str, tuple[str, ...]]:
    return {each.trap.id: each.arms for each in planned_traps(loads(text, installed()))}


def test_a_cache_near_the_limit_is_named_for_every_arm() -> None:
    arms = ("host", "port", "bare")
    assert named(STUDY.replace("SIZE", "480M")) == {"cache-above-limit": arms, "docker-proxy": ("port",)}
    assert named(STUDY.replace("SIZE", "128M")) == {"docker-proxy": ("port",)}


def test_parallel_queries_of_postgresql_in_a_container_are_short_of_shared_memory_and_not_bare() -> None:
    met = {each.trap.id: each for each in planned_traps(shipped("postgresql-paths"))}
    ways = {arm.rpartition("-")[0] for arm in met["shm-64m"].arms}
    assert ways == {"host", "bridge", "published-loopback", "published-address", "volume", "layer", "tmpfs"}
    assert met["data-in-layer"].arms == ("layer-write",)
    assert met["data-on-tmpfs"].arms == ("tmpfs-write",)
    assert met["shm-64m"].evidence["shm.bytes"] == 64 << 20


@pytest.mark.parametrize("name", studies())
def test_every_shipped_study_can_be_asked(name: str) -> None:
    for study in at_every_scale(studies()[name]).values():
        for met in planned_traps(study):
            assert met.evidence
            assert f"[{met.trap.id}]" in met.sentence


def changed(record: RunRecord, hop: str, shm: int, deployment: str) -> RunRecord:
    def change(tree: dict[str, Any]) -> None:
        tree["path"] = {**(tree["path"] or {}), "hop": hop}
        tree["parity"] = {**tree["parity"], "sut": {**(tree["parity"].get("sut") or {}), "shm_bytes": shm}}
        tree["settings"] = {**tree["settings"], "sut": {"database": "postgresql", "deployment": deployment}}
        tree["host"].update(thp="always")

    return synthetic.changed(record, change)


def test_what_sets_an_arm_apart_is_named_and_what_all_meet_is_not() -> None:
    records = [
        changed(each, "docker-proxy", 64 << 20, "container")
        if each.arm == "host"
        else changed(each, "loopback", 8 << 30, "bare")
        for each in synthetic.records(("bare", "host"), 3)
    ]
    met = {each.trap.id: each.arms for each in recorded_traps(synthetic.study(("bare", "host")), records)}
    assert met["docker-proxy"] == ("host",)
    assert met["shm-64m"] == ("host",)
    assert "thp-always" not in met
    assert facts_of_run(records[0])["host.thp"] == "always"


def test_what_a_run_used_is_among_its_facts() -> None:
    usage = Usage(
        monotonic_s=10.0, proxy_cpu_s=4.0, sut_oom_kills=2, machine={"user": 15.0, "idle": 4.0, "steal": 1.0},
        saturation=SaturationOfSides(sut=Saturation(throttled=0.3, waiting=0.2)),
    )  # fmt: skip
    (record,) = synthetic.records(("bare",), 1)
    facts = facts_of_run(record.model_copy(update={"usage": usage}))
    wanted = {
        "load.throttled_share": 0.3, "load.run_queue_share": 0.2, "load.oom_kills": 2, "load.proxy_cpus": 0.4,
        "host.cpu_steal_fraction": 0.05,
    }  # fmt: skip
    assert {name: facts.get(name) for name in wanted} == wanted
    unknown = facts_of_run(record.model_copy(update={"usage": None}))
    assert not unknown.keys() & wanted.keys()


def test_an_untracked_server_has_a_namespace_of_its_own_though_its_client_shares_it() -> None:
    (record,) = synthetic.records(("bare",), 1)
    sides = {"sut": {"deployment": "bare", "network": "untracked"}, "client": {"network": "shared"}}
    assert facts_of_run(record.model_copy(update={"settings": sides}))["net.own_namespace"] is True


def test_a_group_without_a_quota_is_not_throttled() -> None:
    (record,) = synthetic.records(("bare",), 1)
    seen = Parity(sut=Observation(cpu_quota=None))
    assert facts_of_run(record.model_copy(update={"usage": Usage(), "parity": seen}))["load.throttled_share"] == 0.0
    limited = Parity(sut=Observation(cpu_quota=0.5))
    assert "load.throttled_share" not in facts_of_run(
        record.model_copy(update={"usage": Usage(), "parity": limited})
    )


def test_a_baseline_of_which_nothing_is_known_sets_nothing_apart() -> None:
    assert traps_apart({"host": [{"net.path": "docker-proxy"}], "bare": [{}]}, {"host": "bare"}) == ()
    apart = traps_apart({"host": [{"net.path": "docker-proxy"}], "bare": [{"net.path": "host"}]}, {"host": "bare"})
    assert [each.trap.id for each in apart] == ["docker-proxy"]


def test_imported_records_have_no_facts() -> None:
    study = synthetic.study(("bare", "host"))
    imported = study.model_copy(update={"imported": object()})
    assert recorded_traps(imported, synthetic.records(("bare", "host"), 3)) == ()


def test_a_refused_run_names_what_sets_its_arm_apart() -> None:
    good, other = (
        changed(each, "loopback", 8 << 30 if each.arm == "bare" else 64 << 20, "container")
        for each in synthetic.records(("bare", "host"), 1)
    )
    outcome = Outcome(ok=False, reason="SUT: size of /dev/shm", refused=True)
    refused = other.model_copy(update={"outcome": outcome})
    study = synthetic.study(("bare", "host"))
    assert [each.trap.id for each in recorded_traps(study, (good, refused))] == ["shm-64m"]
    failed = other.model_copy(update={"outcome": Outcome(ok=False, reason="it ended")})
    assert recorded_traps(study, (good, failed)) == ()


def test_a_broken_rule_names_the_trap_that_broke_it() -> None:
    killed, other = synthetic.records(("bare", "host"), 1)
    killed = killed.model_copy(update={"usage": Usage(sut_oom_kills=2)})
    behind = traps_behind([("oom-kills", "bare"), ("oom-kills", "host"), ("few-blocks", None)], (killed, other))
    assert {rule: [(met.trap.id, met.arms) for met in traps] for rule, traps in behind.items()} == {
        "oom-kills": [("oom-kills-under-load", ("bare",))]
    }
    assert traps_behind([("oom-kills", "host")], (killed, other)) == {}
    assert all(rule in RULES for known in load_traps() for rule in known.trap.breaks)


def test_a_report_has_both_kinds_in_its_file_and_its_text() -> None:
    records = [
        changed(each, "docker-proxy" if each.arm == "host" else "loopback", 8 << 30, "container")
        for each in synthetic.records(("bare", "host"), 3)
    ]
    killed = [each.model_copy(update={"usage": Usage(sut_oom_kills=1)}) for each in records]
    report = build_report(synthetic.study(("bare", "host")), killed)
    written = {(each.trap, each.rule, each.arms) for each in file_of(report).traps}
    assert ("docker-proxy", None, ("host",)) in written
    assert ("oom-kills-under-load", "oom-kills", ("bare", "host")) in written
    (section,) = validity(report)
    assert [item for item in section.items if item.startswith("Behind oom-kills: bare, host: ")]


def test_a_host_s_own_traps_are_named_and_those_of_one_database_are_not() -> None:
    host = HostFacts(
        thp="always", clocksource="hpet", netfilter_conntrack=True, sysctls={"vm.max_map_count": "65530"}
    )
    assert {each.trap.id for each in host_traps(host)} >= {"netfilter-on-loopback", "slow-clock"}
    assert host_traps(HostFacts(clocksource="tsc", netfilter_conntrack=False)) == ()
    for each in host_traps(host):
        assert not each.trap.trap.hits.databases


def test_what_a_run_observes_of_its_group_and_server_is_a_fact_of_traps() -> None:
    seen = Observation(
        disk_interface="neither", swap_limit="max", pids_limit="2048", hugetlb_limit="0", log_driver="json-file"
    )
    record = synthetic.records(("bare",), 1)[0].model_copy(
        update={"parity": Parity(sut=seen), "effective": {"skip_name_resolve": "OFF"}}
    )
    facts = facts_of_run(record)
    assert facts["process.io"] == "none"
    assert facts["cgroup.swap_allowed_bytes"] == "none"
    assert facts["cgroup.pids_limit"] == 2048
    assert facts["cgroup.hugetlb_limited"] is True
    assert facts["log.driver"] == "json-file"
    assert facts["settings.skip_name_resolve"] is False
    assert "process.io" not in facts_of_run(synthetic.records(("bare",), 1)[0])
