"""The shape of the crates, as a check: no module imports itself in a circle.

What counts as an import: every path that leads to another module of the same crate, be it in a `use`, in the middle
of a function or in a test, with `crate`, `super`, a name that a `use` brought in, or one that a parent re-exports.

What counts as a circle: siblings, each with all that it contains, that import each other. A parent and its children
are one family: `mod child;`, `pub use child::Name` and a child's `use super::Name` are how a module is split over
files, so they make no circle. A name that a parent re-exports leads to the child that has it, so that children who
import each other by way of their parent are found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CRATES = ROOT / "crates"

Module = tuple[str, ...]
"""Its names from the root of the crate, which is `()`."""

_NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*"|b?'(?:\\[^\n]*?|[^\\'\n])'""",
    re.DOTALL,
)
_INLINE = re.compile(r"\bmod\s+\w+\s*\{")
_CHILD = re.compile(r"\bmod\s+(\w+)\s*;")
_USE = re.compile(r"\buse\s+([^;]+);")
_PATH = re.compile(r"(?<![\w:])\w+(?:\s*::\s*\w+)+")
_WORD = re.compile(r"::|[{},*]|\w+")


@dataclass
class Source:
    """One file of a crate. `names`: what its `use` brings in; `globs`: whose names it brings in all of."""

    path: str
    children: tuple[str, ...]
    names: dict[str, Module] = field(default_factory=dict)
    globs: list[Module] = field(default_factory=list)
    paths: list[tuple[int, Module]] = field(default_factory=list)


@dataclass(frozen=True)
class Import:
    """That a module leads to another one, and where it says so."""

    of: Module
    target: Module
    where: str


def code_of(text: str) -> str:
    """The text without comments, strings and characters, each line where it was."""
    return _NOT_CODE.sub(lambda match: "\n" * match[0].count("\n"), text).replace("$crate", "crate")


def read_source(path: str, text: str) -> Source:
    """Its children, and the paths that it names."""
    code = code_of(text)
    inline = list(_inline_modules(code))
    source = Source(path, tuple(_CHILD.findall(code)))

    def add(at: int, segments: Module) -> Module:
        inside = sum(begin < at < end for begin, end in inline)
        while inside and segments[:1] == ("super",):
            inside, segments = inside - 1, segments[1:] or ("self",)
        source.paths.append((code.count("\n", 0, at) + 1, segments))
        return segments

    for match in _USE.finditer(code):
        for segments, name in _tree(_WORD.findall(match[1].replace("r#", ""))):
            leads = add(match.start(), segments)
            if name == "*":
                source.globs.append(leads)
            else:
                source.names[name] = leads
    for match in _PATH.finditer(_USE.sub(lambda match: " " * len(match[0]), code)):
        add(match.start(), tuple(re.findall(r"\w+", match[0])))
    return source


def _inline_modules(code: str) -> Iterator[tuple[int, int]]:
    for match in _INLINE.finditer(code):
        depth, end = 1, match.end()
        while depth and end < len(code):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        yield match.end(), end


def _tree(words: list[str], prefix: Module = ()) -> Iterator[tuple[Module, str]]:
    """`a::{b, c::{self, d as e}, f::*}` → each path with the name that it gets here, `*` for all names."""
    for branch in filter(None, _branches(words)):
        path, rest = prefix, list(branch)
        while rest[:1] not in ([], ["{"], ["*"], ["as"]):
            word = rest.pop(0)
            path += (word,) if word != "::" and (word != "self" or not path) else ()
        if rest[:1] == ["{"]:
            yield from _tree(rest[1:-1], path)
        elif rest[:1] == ["*"]:
            yield path, "*"
        elif path:
            yield path, rest[1] if rest else path[-1]


def _branches(words: list[str]) -> Iterator[list[str]]:
    """The parts between the commas that are in no braces."""
    branch, depth = list[str](), 0
    for word in words:
        depth += {"{": 1, "}": -1}.get(word, 0)
        if word == "," and not depth:
            yield branch
            branch = []
        else:
            branch.append(word)
    yield branch


def read_crate(files: Mapping[str, str], root: str) -> dict[Module, Source]:
    """All modules that `root` declares, itself too. `files`: texts by their path beside it."""
    crate: dict[Module, Source] = {(): read_source(root, files[root])}
    waiting: list[Module] = [()]
    while waiting:
        parent = waiting.pop()
        for name in crate[parent].children:
            module = (*parent, name)
            places = ("/".join(module) + ".rs", "/".join(module) + "/mod.rs")
            path = next((place for place in places if place in files), None)
            assert path is not None, f"{crate[parent].path} declares mod {name}, which has no file"
            crate[module] = read_source(path, files[path])
            waiting.append(module)
    return crate


def resolve(crate: Mapping[Module, Source], origin: Module, path: Module, seen: frozenset[Module]) -> Module | None:
    """The module that a path leads to from `origin`; `None` where it leads out of the crate or to what is local."""
    at: Module | None = None
    for segment in path:
        if at is None or segment in ("crate", "self", "super"):
            here = origin if at is None else at
            steps = {"crate": (), "self": here, "super": here[:-1]}
            at = steps[segment] if segment in steps else _named(crate, here, segment, seen)
            if at is None:
                return None
            continue
        inner = _named(crate, at, segment, seen)
        if inner is None:
            return at
        at = inner
    return at


def _named(crate: Mapping[Module, Source], module: Module, name: str, seen: frozenset[Module]) -> Module | None:
    """What a name in a module leads to, if to a module: a child, or what `use` brought in."""
    key = (*module, name)
    if key in crate:
        return key
    if key in seen:
        return None
    seen |= {key}
    source = crate[module]
    if name in source.names:
        return resolve(crate, module, source.names[name], seen)
    for leads in source.globs:
        target = resolve(crate, module, leads, seen)
        if target is not None and target != module and (result := _named(crate, target, name, seen)) is not None:
            return result
    return None


def imports(crate: Mapping[Module, Source]) -> Iterator[Import]:
    """Every import between two modules of which neither contains the other."""
    for module, source in crate.items():
        for line, path in source.paths:
            target = resolve(crate, module, path, frozenset())
            if target is None:
                continue
            shared = min(len(module), len(target))
            if module[:shared] != target[:shared]:
                yield Import(module, target, f"{source.path}:{line} {'::'.join(path)}")


def circles(files: Mapping[str, str], root: str) -> list[str]:
    """Each circle among the children of one module, with a place for each of its imports."""
    families: dict[Module, dict[str, dict[str, str]]] = {}
    for one in imports(read_crate(files, root)):
        depth = next(at for at, (a, b) in enumerate(zip(one.of, one.target, strict=False)) if a != b)
        siblings = families.setdefault(one.of[:depth], {})
        siblings.setdefault(one.of[depth], {}).setdefault(one.target[depth], one.where)
    return [line for siblings in families.values() for line in _circles_among(siblings)]


def _circles_among(siblings: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    done: set[str] = set()

    def walk(name: str, way: tuple[str, ...]) -> Iterator[str]:
        if name in way:
            circle = (*way[way.index(name) :], name)
            steps = (siblings[a][b] for a, b in pairwise(circle))
            yield f"{' → '.join(circle)} ({'; '.join(steps)})"
        elif name not in done:
            for target in siblings.get(name, {}):
                yield from walk(target, (*way, name))
            done.add(name)

    for name in sorted(siblings):
        yield from walk(name, ())


ROOTS = sorted(path for name in ("lib.rs", "main.rs") for path in CRATES.glob(f"*/src/**/{name}"))


def files_of(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root.parent)): path.read_text() for path in root.parent.rglob("*.rs")}


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: str(root.relative_to(CRATES)))
def test_no_modules_of_a_crate_import_each_other_in_a_circle(root: Path) -> None:
    lines = circles(files_of(root), root.name)
    assert not lines, "\n".join(lines)


def test_every_source_of_the_crates_is_looked_at() -> None:
    read = {
        root.parent / source.path for root in ROOTS for source in read_crate(files_of(root), root.name).values()
    }
    assert read == set(CRATES.glob("*/src/**/*.rs"))


AB = "mod a;\nmod b;\n"

CIRCLES = {
    "two": ({"main.rs": AB, "a.rs": "use crate::b::f;", "b.rs": "use crate::a::g;"}, "a → b → a"),
    "three": (
        {
            "main.rs": AB + "mod c;",
            "a.rs": "use crate::b;",
            "b.rs": "use crate::{c::{self, X}};",
            "c.rs": "use crate::{self as here, a::Y as Z};",
        },
        "a → b → c → a",
    ),
    "by super": ({"main.rs": AB, "a.rs": "use super::b::f;", "b.rs": "use super::a;"}, "a → b → a"),
    "in a function's body only": (
        {"main.rs": AB, "a.rs": "fn f() { crate::b::g(1) }", "b.rs": "fn g() { use crate::a; a::f() }"},
        "a → b → a",
    ),
    "by a name that the parent re-exports": (
        {
            "lib.rs": "pub mod p;",
            "p/mod.rs": AB + "pub use a::One;\npub(crate) use self::b::Other;",
            "p/a.rs": "use super::Other;",
            "p/b.rs": "use crate::p::One;",
        },
        "a → b → a",
    ),
    "by all names of the parent": (
        {"main.rs": AB, "a.rs": "use super::*;\nfn f() { b::g() }", "b.rs": "use crate::*;\nfn g() -> a::X {}"},
        "a → b → a",
    ),
    "between cousins": (
        {
            "lib.rs": "mod p;\nmod q;",
            "p/mod.rs": "mod a;\nmod b;",
            "p/a.rs": "use crate::q::c;",
            "p/b.rs": "",
            "q/mod.rs": "mod c;\nmod d;",
            "q/c.rs": "",
            "q/d.rs": "use super::super::p::b;",
        },
        "p → q → p",
    ),
    "in a test": (
        {
            "main.rs": AB,
            "a.rs": "use crate::b;",
            "b.rs": "#[cfg(test)]\nmod tests {\n    use super::super::a;\n}",
        },
        "a → b → a",
    ),
    "by a macro": (
        {"main.rs": AB, "a.rs": "macro_rules! m { () => { $crate::b::X } }", "b.rs": "use crate::a::m;"},
        "a → b → a",
    ),
}


@pytest.mark.parametrize(("files", "circle"), CIRCLES.values(), ids=CIRCLES)
def test_a_planted_circle_is_found(files: dict[str, str], circle: str) -> None:
    (line,) = circles(files, next(iter(files)))
    assert line.startswith(circle)


def test_a_circle_is_told_with_the_place_of_each_import() -> None:
    files = {"main.rs": AB, "a.rs": '/* "*/\n// use crate::x;\nuse crate::b::f;', "b.rs": "use crate::a::g;"}
    assert circles(files, "main.rs") == ["a → b → a (a.rs:3 crate::b::f; b.rs:1 crate::a::g)"]


def test_a_module_without_a_file_is_an_error() -> None:
    with pytest.raises(AssertionError, match="declares mod b, which has no file"):
        read_crate({"main.rs": AB, "a.rs": ""}, "main.rs")


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("use a::b;", {"b": ("a", "b")}),
        ("use a::b as c;", {"c": ("a", "b")}),
        (
            "use a::{self, b::{self as d, e}, f};",
            {"a": ("a",), "d": ("a", "b"), "e": ("a", "b", "e"), "f": ("a", "f")},
        ),
        ("pub(crate) use self::a::{\n    b,\n};", {"b": ("self", "a", "b")}),
    ],
)
def test_a_use_brings_in_names(text: str, paths: dict[str, Module]) -> None:
    assert read_source("x.rs", text).names == paths


@pytest.mark.parametrize(
    "files",
    [
        {"main.rs": AB, "a.rs": "use crate::b::f;", "b.rs": "use std::a::g;"},
        {"main.rs": AB, "a.rs": "use crate::b::f;", "b.rs": "// use crate::a;\n/// [`crate::a`]\nfn f() {}"},
        {"main.rs": AB, "a.rs": "use crate::b::f;", "b.rs": 'const T: &str = "crate::a::x";'},
        {"main.rs": AB, "a.rs": "use crate::b::f;", "b.rs": 'const T: &str = r#"say "crate::a::x""#;'},
        {"main.rs": AB + "struct Failure;", "a.rs": "use crate::Failure;", "b.rs": "use super::{Failure, a};"},
        {"main.rs": AB + "fn main() { a::run(); b::run() }", "a.rs": "use crate::b;", "b.rs": "use crate::OWN;"},
        {"lib.rs": "mod p;", "p/mod.rs": "mod a;\nuse a::X;\nfn f() { a::g() }", "p/a.rs": "use super::f;"},
        {"main.rs": AB, "a.rs": "mod_of(b);\nuse crate::b;", "b.rs": "mod tests {\n    use super::*;\n}"},
        {
            "main.rs": AB,
            "a.rs": "fn f<'a>(x: &'a str) { crate::b::g('\"') }",
            "b.rs": "fn g<'a>() -> char { '\\'' }",
        },
        {"main.rs": AB, "a.rs": "use crate::b::table;", "b.rs": "macro_rules! table {}\npub(crate) use table;"},
    ],
)
def test_good_code_is_left_alone(files: dict[str, str]) -> None:
    assert circles(files, next(iter(files))) == []
