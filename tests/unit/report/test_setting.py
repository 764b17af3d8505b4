"""What was in force: the same everywhere, different between arms, or changing from run to run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.analyze import synthetic
from tests.unit.record.parts import between

from tare.record.host_facts import HostFacts
from tare.record.node import NodeFacts
from tare.record.observation import Observation, Parity
from tare.report.content import build_report
from tare.report.setting import compare, flatten, setting_of, shown
from tare.report.words.summary import summary


def texts(properties: Any) -> dict[str, list[tuple[str, tuple[str, ...]]]]:
    return {each.name: [(value.text, value.arms) for value in each.values] for each in properties}


def test_a_value_that_all_arms_share_names_no_arm() -> None:
    rows = compare([("a", {"x": 1}), ("b", {"x": 1})])
    assert texts(rows) == {"x": [("1", ())]}
    assert not rows[0].differs


def test_arms_are_gathered_under_the_value_they_have() -> None:
    rows = compare([("a", {"x": 1}), ("b", {"x": 2}), ("c", {"x": 1})])
    assert texts(rows) == {"x": [("1", ("a", "c")), ("2", ("b",))]}
    assert rows[0].differs


def test_a_key_that_an_arm_lacks_is_a_dash() -> None:
    rows = compare([("a", {"x": 1}), ("b", None)])
    assert texts(rows) == {"x": [("1", ("a",)), ("—", ("b",))]}


def test_numbers_that_change_from_run_to_run_become_a_span_and_texts_a_list() -> None:
    trees: list[tuple[str, dict[str, Any]]] = [("a", {"n": n, "t": f"v{n}"}) for n in (3, 1, 2, 5)]
    assert texts(compare(trees)) == {"n": [("1 to 5", ())], "t": [("from run to run: v1; v2; v3 and 1 more", ())]}


def test_what_changes_in_every_arm_is_no_difference_between_arms() -> None:
    rows = compare([("a", {"n": 1}), ("a", {"n": 2}), ("b", {"n": 3}), ("b", {"n": 4})])
    assert texts(rows) == {"n": [("1 to 4", ())]}


def test_what_changes_in_one_arm_only_differs_from_the_steady_ones() -> None:
    rows = compare([("a", {"n": 1}), ("a", {"n": 1}), ("b", {"n": 3}), ("b", {"n": 4})])
    assert texts(rows) == {"n": [("1", ("a",)), ("3 to 4", ("b",))]}


def test_nested_keys_are_joined_and_empty_ones_kept() -> None:
    tree = {"a": {"b": {"c": True}, "d": {}}, "e": [1, None], "f": []}
    assert flatten(tree) == {"a.b.c": "yes", "a.d": "none", "e": "1, —", "f": "none"}


@pytest.mark.parametrize(("value", "text"), [(None, "—"), (False, "no"), (1.50, "1.5"), ("x", "x")])
def test_values_are_written_for_people(value: object, text: str) -> None:
    assert shown(value) == text


def test_the_runs_own_name_does_not_make_its_cgroup_differ() -> None:
    setting = setting_of(synthetic.study(), synthetic.records())
    parity = texts(setting.parity)
    assert parity["sut.cgroups"] == [("/tare/RUN/sut", ())]
    assert [text for text, _ in parity["sut.seccomp"]] == sorted(
        {"0", "2"}, key=[t for t, _ in parity["sut.seccomp"]].index
    )


def test_names_of_runs_and_containers_fill_no_list() -> None:
    """One block, so that nothing is seen to change from run to run; control groups of version 1 are many."""
    token, container = "cf04edafcd94", "5e8933668e6b" * 5 + "abcd"
    places = {"bare": f"/tare/{token}/tare-{token}-sut", "bridge": f"/tare/58d0775a8bda/{container}"}

    def place(tree: dict[str, Any]) -> None:
        tree["parity"]["sut"]["cgroups"] = dict.fromkeys(("cpu", "memory", "pids", ""), places[tree["arm"]])

    made = [synthetic.changed(each, place) for each in synthetic.records(("bare", "bridge"), blocks=1)]
    rows = texts(setting_of(synthetic.study(("bare", "bridge")), made).parity)
    assert [(name, value) for name, value in rows.items() if "cgroups" in name and name.startswith("sut")] == [
        ("sut.cgroups", [("/tare/RUN/tare-RUN-sut", ("bare",)), ("/tare/RUN/CONTAINER", ("bridge",))])
    ]


def test_names_of_containers_fill_no_list_of_variables() -> None:
    token = "cf04edafcd94"

    def name(tree: dict[str, Any]) -> None:
        host = "vm" if tree["arm"] == "bare" else f"tare-{token}-sut"
        tree["effective"] = {
            "hostname": host,
            "slow_query_log_file": f"{host}-slow.log",
            "server_uuid": f"x{token}",
        }

    made = [synthetic.changed(each, name) for each in synthetic.records(("bare", "bridge"), blocks=1)]
    rows = texts(setting_of(synthetic.study(("bare", "bridge")), made).effective)
    assert rows["hostname"] == [("vm", ("bare",)), ("CONTAINER", ("bridge",))]
    assert rows["slow_query_log_file"] == [("vm-slow.log", ("bare",)), ("CONTAINER-slow.log", ("bridge",))]
    assert rows["server_uuid"] == [(f"x{token}", ())]


def test_what_runs_of_an_arm_saw_alike_is_compared_once_and_anything_else_each_time() -> None:
    study = synthetic.study(("bare", "bridge"))
    runs = synthetic.records(("bare", "bridge"), 5)
    seen = {1: "fifo", 2: "other", 3: "fifo"}
    records = [
        run.model_copy(update={"parity": Parity(sut=Observation(scheduler=seen[run.block]))})
        if run.block in seen
        else run.model_copy(update={"parity": Parity(sut=Observation({"cpu": f"/tare/{run.run_id}/sut"}))})
        for run in runs
    ]
    shown_texts = texts(setting_of(study, records).parity)
    assert shown_texts["sut.scheduler"] == [("from run to run: fifo; other; —", ())]
    assert shown_texts["sut.cgroups"] == [("from run to run: /tare/RUN/sut; none", ())]


def test_what_is_the_same_after_the_measurement_is_told_once() -> None:
    def later(tree: dict[str, Any]) -> None:
        tree["parity"]["sut_after"] = {**tree["parity"]["sut"], "seccomp": "7"}

    made = [synthetic.changed(each, later) for each in synthetic.records(("bare",), blocks=1)]
    rows = texts(setting_of(synthetic.study(("bare",)), made).parity)
    assert [name for name in rows if name.startswith("sut_after")] == ["sut_after.seccomp"]
    assert rows["sut_after.seccomp"] == [("7", ())]


def test_what_is_nothing_but_its_parts_has_no_line_of_its_own() -> None:
    rows = compare([("a", {"proxy": None, "hop": None}), ("b", {"proxy": {"pid": 1}, "hop": None})])
    assert texts(rows) == {"hop": [("—", ())], "proxy.pid": [("—", ("a",)), ("1", ("b",))]}


def test_namespaces_are_told_by_whose_they_are_and_not_by_numbers_that_each_run_is_given() -> None:
    numbers = {
        "bare": {"sut": {"net": "1", "mnt": "7"}, "client": {"net": "1", "mnt": "8"}},
        "bridge": {"sut": {"net": "5", "mnt": "9"}, "client": {"net": "1", "mnt": "8"}},
        "shared": {"sut": {"net": "6", "mnt": "9"}, "client": {"net": "6", "mnt": "8"}},
    }

    def place(tree: dict[str, Any]) -> None:
        arm = tree["arm"]
        for side, rows in numbers[arm].items():
            tree["parity"].setdefault(side, {})["namespaces"] = rows
        deployment = "bare" if arm == "bare" else "container"
        tree["settings"] = {"sut": {"deployment": deployment}, "client": {"deployment": "bare"}}

    arms = ("bare", "bridge", "shared")
    made = [synthetic.changed(each, place) for each in synthetic.records(arms, blocks=1)]
    rows = texts(setting_of(synthetic.study(arms), made).parity)
    assert rows["sut.namespaces.net"] == [("the host's", ("bare",)), ("its own", ("bridge", "shared"))]
    assert rows["client.namespaces.net"] == [("the host's", ("bare", "bridge")), ("the SUT's", ("shared",))]
    assert rows["sut.namespaces.mnt"] == [("its own", ())]


def test_of_the_way_is_told_what_is_not_given_anew_to_each_run() -> None:
    proxied = {
        "client_dialled": {"address": "127.0.0.1", "port": 32772},
        "server_sees": {"address": "172.18.0.1", "port": 9},
        "client_namespace": "1", "server_namespace": "2", "connections": 8, "hop": "docker-proxy",
        "proxy": {"boot_id": "x", "pid": 7, "started_ticks": 9},
    }  # fmt: skip
    unseen = {**proxied, "hop": None, "proxy": None, "server_sees": None, "server_namespace": "1"}
    seen = {"bare": unseen, "bridge": proxied}

    def go(tree: dict[str, Any]) -> None:
        tree["path"] = seen[tree["arm"]]

    made = [synthetic.changed(each, go) for each in synthetic.records(("bare", "bridge"), blocks=1)]
    assert texts(setting_of(synthetic.study(("bare", "bridge")), made).path) == {
        "carrier": [("—", ())],
        "client_dialled": [("127.0.0.1", ())],
        "client_hop": [("—", ())],
        "wire": [("—", ())],
        "server_sees": [("—", ("bare",)), ("172.18.0.1", ("bridge",))],
        "connections": [("8", ())],
        "hop": [("—", ("bare",)), ("docker-proxy", ("bridge",))],
        "docker_proxy": [("no", ("bare",)), ("yes", ("bridge",))],
        "one_network_namespace": [("yes", ("bare",)), ("no", ("bridge",))],
    }


def test_hierarchies_that_differ_are_told_one_by_one() -> None:
    def part(tree: dict[str, Any]) -> None:
        tree["parity"]["sut"]["cgroups"] = {"cpu": "/a", "memory": "/b"}

    made = [synthetic.changed(each, part) for each in synthetic.records(("bare",), blocks=1)]
    rows = texts(setting_of(synthetic.study(("bare",)), made).parity)
    assert (rows["sut.cgroups.cpu"], rows["sut.cgroups.memory"]) == ([("/a", ())], [("/b", ())])


def test_the_variables_that_the_study_sets_are_known_in_either_spelling() -> None:
    study = synthetic.study(("bare",))
    sut = study.arms[0].settings.sut.model_copy(update={"settings": {"Innodb-Flush-Method": "x"}})
    settings = study.arms[0].settings.model_copy(update={"sut": sut})
    study = study.model_copy(update={"arms": (study.arms[0].model_copy(update={"settings": settings}),)})
    assert setting_of(study, []).asked == {"innodb_flush_method"}


def test_one_image_on_both_sides_is_told_once() -> None:
    (bits,) = setting_of(synthetic.study(), synthetic.records()).images
    assert bits.sides == ("sut", "client")
    assert bits.packages[0] == ("mariadb-server", "1:10.11.6-0+deb12u1")


def test_the_host_of_each_node_and_of_the_client_is_named_with_its_facts() -> None:
    places = (("sut-1", "a", "6.1"), ("sut-2", "b", "6.2"))
    nodes = {name: NodeFacts(on=host, host=HostFacts(kernel=kernel)) for name, host, kernel in places}
    fields = {"between": between(), "nodes": nodes, "client_host": HostFacts(kernel="6.3")}
    records = [record.model_copy(update=fields) for record in synthetic.records()]
    setting = setting_of(synthetic.study(), records)
    assert texts(setting.hosts) == {"sut-1": [("a", ())], "sut-2": [("b", ())], "client": [("c", ())]}
    kernels = {side: texts(facts)["kernel"] for side, facts in setting.others}
    assert kernels == {"sut-2": [("6.2", ())], "client": [("6.3", ())]}
    facts = {fact.title: fact.text for fact in summary(build_report(synthetic.study(), records))}
    assert facts["Hosts"] == "sut-1 on a, sut-2 on b, client on c"
    assert "Hosts" not in {fact.title for fact in summary(build_report(synthetic.study(), synthetic.records()))}


def test_mounts_without_a_device_are_named_by_their_file_system_only() -> None:
    def mounted(number: int) -> Callable[[dict[str, Any]], None]:
        def change(tree: dict[str, Any]) -> None:
            tree["parity"]["client"]["root_mount"] = f"tmpfs 0:{number}"
            tree["parity"]["client"]["mounts"] = {"/run": f"tmpfs 0:{number + 1}", "/data": "ext4 8:1"}

        return change

    runs = [
        synthetic.changed(each, mounted(40 + number))
        for number, each in enumerate(synthetic.records(("bare", "bridge"), blocks=2))
    ]
    shown = {
        each.name: [value.text for value in each.values]
        for each in setting_of(synthetic.study(("bare", "bridge")), runs).parity
    }
    assert shown["client.root_mount"] == ["tmpfs"]
    assert shown["client.mounts./run"] == ["tmpfs"]
    assert shown["client.mounts./data"] == ["ext4 8:1"]
