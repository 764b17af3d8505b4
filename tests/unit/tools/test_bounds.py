"""No test fails because the machine is busy: none asserts that something took at most so many seconds.

A test proves promptness by what happened, and in which order, or by a ratio to what took time in the same run.
Whoever waits for something waits `PATIENT_S`; whoever wants to see a time limit expire sets one below `HASTY_S`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PATIENT_S, HASTY_S = 60, 3
_CLOCKS = {"monotonic", "perf_counter", "time", "monotonic_ns", "perf_counter_ns"}
_WAITS = {"wait", "communicate", "run", "join", "check_output"}


def bounds_of(source: str) -> Iterator[tuple[int, str]]:
    """Line and fault of each bound in seconds that a busy machine breaks."""
    tree = ast.parse(source)
    numbers = {name: number for name, value in _assigned(tree) if (number := _number(value, {})) is not None}
    spans = {name for name, value in _assigned(tree) if _is_span(value, set())}
    parts = {node.left for node in ast.walk(tree) if isinstance(node, ast.BinOp)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            for each in ast.walk(node.test):
                if isinstance(each, ast.Compare) and _is_upper_bound(each, spans, numbers):
                    yield each.lineno, "asserts how long something took"
        if isinstance(node, ast.BinOp) and node not in parts:
            waits = _patience(node, numbers)
            if waits is not None and waits < PATIENT_S:
                yield node.lineno, f"waits {waits:g} s"
        if isinstance(node, ast.Call):
            yield from ((node.lineno, what) for what in _limits(node))


def _limits(call: ast.Call) -> Iterator[str]:
    if ast.unparse(call.func) == "pytest.mark.timeout":
        limit = _number(call.args[0], {})
        if limit is not None and limit < PATIENT_S:
            yield f"may take {limit:g} s"
    for keyword in call.keywords if _name(call.func) in _WAITS else ():
        limit = _number(keyword.value, {}) if keyword.arg in {"timeout", "timeout_s"} else None
        if limit is not None and HASTY_S <= limit < PATIENT_S:
            yield f"has a time limit of {limit:g} s"


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _number(node: ast.expr, numbers: dict[str, float]) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    return numbers.get(node.id) if isinstance(node, ast.Name) else None


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _name(node.func) in _CLOCKS


def _patience(node: ast.expr, numbers: dict[str, float]) -> float | None:
    """Sum of what is added to a clock's reading; `None` for anything else."""
    if _is_clock(node):
        return 0.0
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return None
    before, more = _patience(node.left, numbers), _number(node.right, numbers)
    return None if before is None or more is None else before + more


def _is_span(node: ast.expr, spans: set[str]) -> bool:
    """Whether an expression is a time that something took: a clock's reading minus an earlier one."""
    if isinstance(node, ast.Name):
        return node.id in spans
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_clock(node.left)


def _is_upper_bound(node: ast.Compare, spans: set[str], numbers: dict[str, float]) -> bool:
    sides = [node.left, *node.comparators]
    for low, how, high in zip(sides, node.ops, sides[1:], strict=False):
        if isinstance(how, ast.Gt | ast.GtE):
            low, high = high, low  # noqa: PLW2901 - both orders of one comparison
        elif not isinstance(how, ast.Lt | ast.LtE):
            continue
        if _is_span(low, spans) and _number(high, numbers) is not None:
            return True
    return False


@pytest.mark.parametrize(
    "line",
    [
        "assert time.monotonic() - began < 10",
        "assert 10 >= time.monotonic() - began",
        "assert 0.3 <= time.monotonic() - began < 10",
        "took_s = time.perf_counter() - began\nassert took_s <= MOST_S\nMOST_S = 4",
        "deadline = time.monotonic() + 20",
        "deadline = time.monotonic() + LIMIT_S + 20\nLIMIT_S = 5.0",
        "process.wait(timeout=10)",
        "host.run(argv, timeout_s=30)",
        "pytestmark = pytest.mark.timeout(20)",
    ],
)
def test_a_bound_that_a_busy_machine_breaks_is_named(line: str) -> None:
    assert len(list(bounds_of(line))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "assert time.monotonic() - began > 1.5",
        "took_s = time.monotonic() - began\nassert held_s <= took_s\nassert took_s < 5 * reference_s",
        "deadline = time.monotonic() + 60\nassert time.monotonic() < deadline",
        "host.run(argv, timeout_s=0.5)",
        "process.wait(timeout=120)",
    ],
)
def test_waiting_patiently_and_comparing_two_times_of_a_run_are_not(line: str) -> None:
    assert not list(bounds_of(line))


def test_no_test_asserts_how_long_a_busy_machine_takes() -> None:
    faults = [
        f"{path.relative_to(ROOT)}:{line} {what}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for line, what in bounds_of(path.read_text(encoding="utf-8"))
    ]
    assert not faults, "\n".join(faults)


RUST = re.compile(r"assert!\([^;]*?elapsed\(\)\s*<=?\s*(?:[A-Z_]+\b|\w+::from_)", re.DOTALL)


@pytest.mark.parametrize(
    "line",
    [
        'assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());',
        "assert!(done.is_err() && began.elapsed() <= LIMIT);",
        "assert!(\n    started.elapsed() < LIMIT + Duration::from_secs(1)\n);",
    ],
)
def test_a_bound_of_a_test_in_rust_is_found(line: str) -> None:
    assert RUST.search(line)


def test_no_test_in_rust_asserts_how_long_a_busy_machine_takes() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "crates").rglob("*.rs"))}
    bounds = [
        f"{path.relative_to(ROOT)}: {seen.group()}"
        for path, text in sources.items()
        for seen in RUST.finditer(text)
    ]
    assert not bounds, "\n".join(bounds)
    assert not RUST.search("assert!(began.elapsed() >= Duration::from_secs(1));")
