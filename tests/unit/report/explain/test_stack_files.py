from __future__ import annotations

import gzip
import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest

from tare.analyze.explain.stacks import ArmStacks
from tare.report.explain import flame, stack_files
from tare.report.explain.pprof import pprof

FOUND = ArmStacks(
    study="percona-2016",
    arm="bridge",
    baseline="bare",
    stacks={"server;db;[db]": 6.0, "server;db;[db];tcp_sendmsg_[k]": 2.0, "server;db;[db];nf_hook_slow_[k]": 2.0},
    baseline_stacks={"server;db;[db]": 6.0, "server;db;[db];tcp_sendmsg_[k]": 3.0, "server;db;gone_[k]": 1.0},
    runs=5,
)


def test_collapsed_stacks_are_nanoseconds_an_operation() -> None:
    assert stack_files.collapsed(FOUND).splitlines() == [
        "server;db;[db] 6000",
        "server;db;[db];tcp_sendmsg_[k] 2000",
        "server;db;[db];nf_hook_slow_[k] 2000",
    ]


def test_speedscope_gets_arm_and_baseline_over_shared_frames() -> None:
    tree = json.loads(stack_files.speedscope(FOUND))
    arm, baseline = tree["profiles"]
    names = [frame["name"] for frame in tree["shared"]["frames"]]
    assert [names[frame] for frame in arm["samples"][2]] == ["server", "db", "[db]", "nf_hook_slow_[k]"]
    assert arm["weights"] == [6.0, 2.0, 2.0]
    assert (arm["endValue"], baseline["endValue"]) == (10.0, 10.0)


def test_pprof_gets_arm_and_baseline_as_two_values_of_stacks_from_the_leaf() -> None:
    fields = read_message(gzip.decompress(pprof(FOUND)))
    strings = [value.decode() for number, value in fields if number == 6]
    assert strings[0] == ""
    functions = {
        of[1]: strings[of[2]] for of in (dict(read_message(each)) for number, each in fields if number == 5)
    }
    locations = {
        of[1]: functions[dict(read_message(of[4]))[1]]
        for of in (dict(read_message(each)) for number, each in fields if number == 4)
    }
    samples = {
        tuple(locations[frame] for frame in read_packed(of[1])): read_packed(of[2])
        for of in (dict(read_message(each)) for number, each in fields if number == 2)
    }
    assert samples == {
        ("[db]", "db", "server"): [6000, 6000],
        ("tcp_sendmsg_[k]", "[db]", "db", "server"): [2000, 3000],
        ("nf_hook_slow_[k]", "[db]", "db", "server"): [2000, 0],
        ("gone_[k]", "db", "server"): [0, 1000],
    }
    types = [dict(read_message(each)) for number, each in fields if number == 1]
    assert [(strings[of[1]], strings[of[2]]) for of in types] == [
        ("arm", "nanoseconds"),
        ("baseline", "nanoseconds"),
    ]


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at


def read_packed(data: bytes) -> list[int]:
    result, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at)
        result.append(value)
    return result


def read_message(data: bytes) -> list[tuple[int, Any]]:
    """Field number and value, in order, of a protobuf message of numbers and strings."""
    rows: list[tuple[int, Any]] = []
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        value, at = read_varint(data, at)
        if key & 7 == 2:
            rows.append((key >> 3, data[at : at + value]))
            at += value
        else:
            rows.append((key >> 3, value))
    return rows


def test_the_flame_graph_is_one_xml_file_that_loads_nothing() -> None:
    text = flame.render(FOUND)
    root = ElementTree.fromstring(text)
    assert root.tag.endswith("svg")
    assert not re.findall(r'(?:href|src)="|url\(|@import|https?://(?!www\.w3\.org/2000/svg)', text)


def test_widths_are_the_arms_time_and_colours_the_difference() -> None:
    tree = flame.tree_of(FOUND)
    drawn = {box.node.name: box for box in flame.boxes(tree, 0.0, flame.WIDTH_PX / tree.us)}
    assert drawn["all"].width_px == pytest.approx(flame.WIDTH_PX)
    assert drawn["nf_hook_slow_[k]"].width_px == pytest.approx(0.2 * flame.WIDTH_PX)
    assert "gone_[k]" not in drawn, "the arm does not do it any more"
    red = flame.colour(drawn["nf_hook_slow_[k]"].node, tree.us, compared=True)
    blue = flame.colour(drawn["tcp_sendmsg_[k]"].node, tree.us, compared=True)
    assert red == "rgb(250,94,94)"
    assert blue == "rgb(94,94,250)"


def test_children_lie_side_by_side_within_their_parent() -> None:
    tree = flame.tree_of(FOUND)
    drawn = {box.node.name: box for box in flame.boxes(tree, 0.0, 100.0)}
    parent, first, second = (drawn[name] for name in ("[db]", "nf_hook_slow_[k]", "tcp_sendmsg_[k]"))
    assert first.x_px == parent.x_px
    assert second.x_px == pytest.approx(first.x_px + first.width_px)
    assert second.x_px + second.width_px <= parent.x_px + parent.width_px


def test_names_from_a_program_cannot_break_out_of_the_picture() -> None:
    hostile = ArmStacks("s", "a", "b", {'server;<script>"&;[x]': 1.0}, {}, 1)
    root = ElementTree.fromstring(flame.render(hostile))
    names = [each.get("data-n") for each in root.iter() if each.get("data-n")]
    assert '<script>"&' in names


def test_collapsed_stacks_of_hostile_names_are_lines_without_control_characters() -> None:
    stacks = {"server;\x1b[2Jdb\n9;\u202e[x] y": 1.0, "server;a\x9b31m": 2.0}
    assert stack_files.collapsed(ArmStacks("s", "a", "b", stacks, {}, 1)).split("\n") == [
        "server;\ufffd[2Jdb\ufffd9;\ufffd[x] y 1000",
        "server;a\ufffd31m 2000",
        "",
    ]


@pytest.mark.parametrize("name", ["\x1b[31mred", "a\x00b", "\u202eevil", "line\nend", "\udc80"])
def test_names_that_xml_cannot_hold_leave_a_picture_that_can_be_shown(name: str) -> None:
    drawn = flame.render(ArmStacks(name, name, name, {f"server;{name};[x]": 1.0}, {name: 1.0}, 1))
    root = ElementTree.fromstring(drawn.encode())
    assert "\ufffd" in "".join(each.get("data-n") or "" for each in root.iter())
