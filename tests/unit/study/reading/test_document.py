"""Odd YAML and odd files end in one clear error, or mean what they look like."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from tare.errors import StudyError
from tare.study.reading.document import MAX_BYTES, _composed, _nodes, dotted, parse, read


def tree(text: str) -> dict[str, object]:
    return parse(text, "study.yaml").tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"study\.yaml:1:1: the file is empty"),
        ("# only a comment\n", r"the file is empty"),
        ("- a\n- b\n", r"a study is a mapping"),
        ("just words\n", r"a study is a mapping"),
        ("a:\n\tb: 1\n", r"study\.yaml:2:1: not YAML: .*indent with spaces, not tabs"),
        ("a: [1, 2\n", r"study\.yaml:2:1: not YAML"),
        ("a: 'x\n", r"not YAML: found unexpected end of stream"),
        ("a: 1\n b: 2\n", r"study\.yaml:2:3: not YAML"),
        ("a: 1\n---\nb: 2\n", r"study\.yaml:2:1: not YAML: but found another document"),
        ("a: 1\nb: \x01\n", r"study\.yaml:2:1: not YAML: the control character U\+0001"),
        ("a: 1\nb: {c: 1, c: 2}\n", r"study\.yaml:2:11: b\.c: duplicate key \(the first is on line 2\)"),
        ("a: 1\nb: &x 2\n", r"study\.yaml:2:1: b: YAML anchors and aliases are not supported"),
        ("a: &x [1]\nb: *x\n", r"study\.yaml:1:1: a: YAML anchors and aliases are not supported"),
        ("b:\n  <<: {c: 1}\n", r"b: a key must be a plain word"),
        ("a: *x\n", r"undefined alias"),
        ("a: !!python/object/apply:os.system [true]\n", r"a: the tag .* is not supported"),
        ("a: !!set {b}\n", r"a: the tag .* is not supported"),
        ("a: !custom 1\n", r"a: the tag !custom is not supported"),
        ("{{x}}: 1\n", r"a key must be a plain word"),
        ("? [a, b]\n: 1\n", r"a key must be a plain word"),
        ("a: .nan\n", r"a: \.nan is not a finite number"),
        ("a: -.inf\n", r"a: -\.inf is not a finite number"),
        ("a: 1e999\n", r"a: 1e999 is not a finite number"),
        (f"a: {'9' * 5000}\n", r"is not a number"),
        ("[" * 5000, r"nested too deeply"),
    ],
)
def test_what_is_not_one_plain_mapping_is_refused(text: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        tree(text)


def test_a_billion_laughs_are_refused() -> None:
    lines = ['a0: &a0 ["lol"]'] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(StudyError, match="YAML anchors and aliases are not supported"):
        tree("\n".join(lines))


def test_scalars_mean_what_yaml_1_2_says() -> None:
    text = "a: yes\nb: no\nc: on\nd: true\ne: 010\nf: 10_000_000\ng: 0x10\nh: 1e3\ni: -1.5\nj: ~\nk: 2016-02-05\n"
    assert tree(text + "l: '1'\nm:\n") == {
        "a": "yes", "b": "no", "c": "on", "d": True, "e": 10, "f": 10_000_000, "g": 16, "h": 1000.0, "i": -1.5,
        "j": None, "k": "2016-02-05", "l": "1", "m": None,
    }  # fmt: skip


def test_keys_are_text_whatever_they_look_like() -> None:
    assert tree("10: a\ntrue: b\n1.5: c\n") == {"10": "a", "true": "b", "1.5": "c"}


def test_a_byte_order_mark_is_no_part_of_the_study(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert read(file).tree == {"a": 1, "b": 2}


def test_what_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(StudyError, match=r"study\.yaml:2:1: not UTF-8 text"):
        read(file)


def test_a_file_too_long_for_a_study_is_not_parsed(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_bytes(b"a: 1\n" * 2_000_000)
    with pytest.raises(StudyError, match=f"longer than {MAX_BYTES // 1024} KiB"):
        read(file)


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_what_cannot_be_read_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=f"cannot read {tmp_path}"):
        read(tmp_path / name)


def test_a_patched_key_is_said_to_come_from_its_patch() -> None:
    document = parse("sut:\n  network: host\n  limits: {cpus: a}\npatch:\n  sut.limits: {cpus: b}\n", "s")
    patched = document.patched(("sut", "limits"), ("patch", "sut.limits"))
    assert patched.tree["sut"] == {"network": "host", "limits": {"cpus": "b"}}
    assert document.tree["sut"]["limits"] == {"cpus": "a"}
    origin = patched.origin(("sut", "limits", "cpus"))
    assert (origin.line, dotted(origin.path)) == (5, "patch.sut.limits.cpus")
    assert patched.origin(("sut", "network")).line == 2


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(StudyError):
        assert isinstance(tree(text), dict)


def _tree(node: Node | None) -> object:
    """A node with all that a reader looks at; where nothing is written, the two say differently where that is."""
    if node is None:
        return None
    if isinstance(node, ScalarNode):
        value: object = node.value
    elif isinstance(node, MappingNode):
        value = [(_tree(key), _tree(each)) for key, each in node.value]
    else:
        value = [_tree(each) for each in node.value]
    style = node.style or None if isinstance(node, ScalarNode) else None
    if value == "" and style is None:
        return str(node.tag)
    return (str(node.tag), style, node.start_mark.line, node.start_mark.column, value)


SHIPPED = sorted((Path(__file__).parents[4] / "studies").glob("*/study.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.parent.name)
def test_libyaml_and_python_compose_the_same_nodes_of_shipped_studies(path: Path) -> None:
    text = path.read_text()
    assert _tree(_composed(text, pure=False)) == _tree(_composed(text, pure=True))


PIECES = [
    *"ab1:-#,[]{}|>?~ '\"",
    ": ",
    "- ",
    "\n",
    "\n  ",
    "\n    ",
    "é",
    "<<",
    "---",
    "...",
    "0o17",
    "1_0",
    "1e3",
    ".inf",
]
PIECES += ["on", "null", "2026-11-24"]


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_libyaml_composes_what_python_composes_or_is_not_asked(text: str) -> None:
    try:
        wanted = _composed(text, pure=True)
    except (YAMLError, ValueError):
        return  # read by Python alone, for its error
    assert _tree(_nodes(text)) == _tree(wanted)


@pytest.mark.parametrize("character", ["\u202e", "\u2066"])
def test_a_text_that_shows_in_another_order_than_it_has_is_refused(character: str) -> None:
    with pytest.raises(StudyError, match=rf"s:2:3: a.b: the character U\+{ord(character):04X}"):
        parse(f"a:\n  b: x{character}y\n", "s")


def test_a_text_of_a_script_that_runs_from_right_to_left_is_read() -> None:
    assert parse("a: שלום\n", "s").tree == {"a": "שלום"}
