"""The shape of the code, as checks: who may import whom, who may touch a machine, what a folder of plug-ins holds.

Each rule is a function from source text to what breaks it, and is itself tried on a text that breaks it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "tare"

STAGES = ("study", "plan", "record", "run", "store", "analyze", "calibrate", "report", "knowledge", "live")
PLUGINS = ("images", "deployments", "databases", "workloads", "monitors", "protocols", "sites", "storage")
BEHIND_HOST = ("deployments", "databases", "workloads", "monitors", "storage")
ON_HOST = {
    "deployments/bare/launcher.py", "deployments/vm/guest_line.py", "deployments/cgroup/warden.py",
    "deployments/container/handover.py", "deployments/containerd/supervisor.py", "deployments/marked.py",
    "calibrate/delay_proxy.py", "calibrate/kernel_events.py", "calibrate/link_costs.py",
    "monitors/cpu_clock.py",
    "monitors/stamper.py", "monitors/stats_reader.py", "monitors/cadvisor_server.py",
    "monitors/prometheus_reader.py", "databases/cassandra/cql_query.py", "databases/mongodb/mongo_query.py",
    "databases/ferretdb/together.py", "run/between/sounder.py", "doctor/offloads.py",
}  # fmt: skip
"""Programs that are sent to a host and run by its own Python: they are the machine's side of `Host`."""
VAGUE_NAMES = {"util", "utils", "helper", "helpers", "common", "misc", "base", "core", "lib"}

MACHINE_MODULES = {"subprocess", "shutil", "pty", "multiprocessing", "ctypes", "fcntl", "glob", "tempfile"}
FILE_METHODS = {
    "read_text", "read_bytes", "write_text", "write_bytes", "open", "mkdir", "unlink", "rmdir", "iterdir", "glob",
    "rglob", "touch", "rename", "replace_with", "symlink_to", "chmod", "exists", "is_file", "is_dir", "stat",
}  # fmt: skip
KEPT_FILE_METHODS = {"read_text", "read_bytes", "open"}
"""Allowed in workloads and monitors, which parse raw output that was already copied from the machine."""

Rule = Callable[[ast.Module, str], Iterator[str]]


def folder_of(module: str) -> str:
    """`tare.record.run_record` → `record`, `tare.errors` → `errors`, anything else → ``."""
    parts = module.split(".")
    return parts[1] if parts[0] == "tare" and len(parts) > 1 else ""


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every imported module with its line, those for type checking and inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            if node.module == "tare":
                yield from ((node.lineno, f"tare.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, node.module or ""


def stage_order(tree: ast.Module, folder: str) -> Iterator[str]:
    """A stage imports only the stages above it; nothing but the command line imports the command line."""
    for line, module in imports(tree):
        target = folder_of(module)
        if folder in STAGES and target in STAGES and STAGES.index(target) > STAGES.index(folder):
            yield f"line {line}: stage {folder} imports the later stage {target}"
        if target == "cli" and folder not in ("cli", "__main__"):
            yield f"line {line}: only the command line may import tare.cli"
        if folder == "cli" or target not in ("doctor",):
            continue
        if folder != target:
            yield f"line {line}: tare.{target} is for the command line alone"


def reading_without_running(tree: ast.Module, folder: str) -> Iterator[str]:
    """What reads records knows the record alone, never how a run is made."""
    for line, module in imports(tree):
        if folder == "analyze" and folder_of(module) == "run":
            yield f"line {line}: {folder} imports {module}; what both need belongs into record/"


def plugins_below_stages(tree: ast.Module, folder: str) -> Iterator[str]:
    """Plug-ins know studies, plans and the record's types, never how a run is driven, kept or judged."""
    for line, module in imports(tree):
        if folder in PLUGINS and (module.endswith("run_record") or folder_of(module) in (*STAGES[3:], "cli")):
            yield f"line {line}: plug-in folder {folder} imports {module}"


def machine_behind_host(tree: ast.Module, folder: str) -> Iterator[str]:
    """What runs on a machine is asked of a `Host`: no process, no file of a machine is touched directly."""
    if folder not in BEHIND_HOST:
        return
    allowed = KEPT_FILE_METHODS if folder in ("workloads", "monitors") else set()
    own_files = {
        _target(node) for node in tree.body if isinstance(node, ast.Assign) and "__file__" in ast.unparse(node)
    }
    for line, module in imports(tree):
        if module.split(".")[0] in MACHINE_MODULES:
            yield f"line {line}: {folder} imports {module}; ask the Host"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if (
            isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "os"
        ):
            yield f"line {node.lineno}: {folder} calls os.{node.func.attr}(); ask the Host"
        if isinstance(node.func, ast.Name) and node.func.id == "open":
            yield f"line {node.lineno}: {folder} opens a file; ask the Host"
        if isinstance(node.func, ast.Attribute) and node.func.attr in FILE_METHODS - allowed:
            receiver = ast.unparse(node.func.value)
            if "__file__" in receiver or receiver in own_files:
                continue
            yield f"line {node.lineno}: {folder} calls .{node.func.attr}(); ask the Host"


def output_in_cli_only(tree: ast.Module, folder: str) -> Iterator[str]:
    """No print, no exit and no use of the standard streams outside the command line and `main` of a program."""
    if folder in ("cli", "__main__"):
        return
    excused = {inner for node in _program(tree) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if node in excused:
            continue
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("print", "exit", "quit")
        ):
            yield f"line {node.lineno}: {node.func.id}() outside cli/"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name in ("sys.exit", "os._exit", "sys.stdout", "sys.stderr", "typer.echo", "typer.Exit"):
                yield f"line {node.lineno}: {name} outside cli/"
        if isinstance(node, ast.Name) and node.id == "SystemExit":
            yield f"line {node.lineno}: SystemExit outside cli/"


def _program(tree: ast.Module) -> list[ast.stmt]:
    """The block of `if __name__ == "__main__"` and, where there is one, the function `main` that it calls."""
    blocks = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"
    ]
    mains = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.strip("_") == "main"]
    return [*blocks, *mains] if blocks else []


def standard_library_only(tree: ast.Module, folder: str) -> Iterator[str]:
    """What runs on a host's own Python finds nothing else there."""
    for line, module in imports(tree):
        if module.split(".")[0] not in sys.stdlib_module_names:
            yield f"line {line}: {folder} sends {module} to a host that does not have it"


def contract(tree: ast.Module, folder: str) -> Iterator[str]:
    """A plug-in folder's `__init__`: one Protocol of at most five methods to implement, its value types.

    A method with a body is a default, which an implementation need not have.
    """
    protocols = [node for node in tree.body if isinstance(node, ast.ClassDef) and _is_protocol(node)]
    if len(protocols) != 1:
        yield f"{folder}/__init__.py holds {len(protocols)} Protocols, not one"
    for protocol in protocols:
        functions = [node for node in protocol.body if isinstance(node, ast.FunctionDef)]
        methods = [node.name for node in functions if ast.unparse(node.body[-1]) == "..."]
        if len(methods) > 5:
            yield f"{protocol.name} has {len(methods)} methods: {', '.join(methods)}"
    for line, module in imports(tree):
        if module == f"tare.{folder}.registry":
            yield f"line {line}: the contract of {folder} imports {module}, which builds on it"
    for name in _dicts(tree):
        yield f"{folder}/__init__.py holds the dict {name}; it belongs into registry.py"


def registry(tree: ast.Module, folder: str) -> Iterator[str]:
    """A plug-in folder's `registry.py`: one dict in capitals, from name to implementation."""
    dicts = _dicts(tree)
    if len(dicts) != 1 or not dicts[0].isupper():
        yield f"{folder}/registry.py holds {len(dicts)} dicts ({', '.join(dicts)}), not one in capitals"


def _dicts(tree: ast.Module) -> list[str]:
    return [_target(node) for node in tree.body if isinstance(getattr(node, "value", None), ast.Dict)]


def import_circles(sources: Mapping[str, str]) -> list[list[str]]:
    """Groups of modules (name → source) that import each other, each sorted; imports are taken as `imports` does.

    A name imported from a package is that package's module of the name, else the package itself. Whoever imports a
    module from outside of its package runs the package's `__init__` too.
    """
    graph = {name: _imported_modules(name, ast.parse(source), sources) for name, source in sources.items()}
    reach = {name: _reachable(graph, name) for name in graph}
    circles = {tuple(sorted(other for other in reach[name] if name in reach[other])) for name in graph}
    return sorted(list(circle) for circle in circles if circle)


def _imported_modules(name: str, tree: ast.Module, sources: Mapping[str, str]) -> set[str]:
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            imported.update(module if module in sources else node.module for module in inner)
    packages = {
        package
        for module in imported
        for package in _packages(module)
        if package != name and not name.startswith(f"{package}.")
    }
    return (imported | packages) & set(sources)


def _packages(module: str) -> list[str]:
    """`a.b.c` → `a`, `a.b`."""
    parts = module.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _reachable(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """All modules that `start` imports, directly or not; itself only where a circle leads back."""
    reached: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        if (module := waiting.pop()) not in reached:
            reached.add(module)
            waiting.extend(graph[module])
    return reached


def _is_protocol(node: ast.ClassDef) -> bool:
    bases = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in bases)


def _target(node: ast.stmt) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return targets[0].id if isinstance(targets[0], ast.Name) else ""


RULES: tuple[Rule, ...] = (
    stage_order,
    reading_without_running,
    plugins_below_stages,
    machine_behind_host,
    output_in_cli_only,
)

MODULES = sorted(PACKAGE.rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    """All rules read the same tree: parsing every module takes a second."""
    return ast.parse(path.read_text())


def folder_in_package(path: Path) -> str:
    """The stage, plug-in folder or top-level module that a file belongs to."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_module_keeps_the_rule(rule: Rule) -> None:
    broken = [
        f"{path.relative_to(ROOT)} {what}"
        for path in MODULES
        if str(path.relative_to(PACKAGE)) not in ON_HOST
        for what in rule(parsed(path), folder_in_package(path))
    ]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("name", sorted(ON_HOST))
def test_a_program_sent_to_a_host_needs_the_standard_library_only(name: str) -> None:
    assert not list(standard_library_only(ast.parse((PACKAGE / name).read_text()), name))


@pytest.mark.parametrize("folder", PLUGINS)
def test_plugin_folder_has_a_contract_and_one_explicit_dict_beside_it(folder: str) -> None:
    for rule, name in ((contract, "__init__.py"), (registry, "registry.py")):
        assert not list(rule(ast.parse((PACKAGE / folder / name).read_text()), folder))


def test_no_modules_import_each_other() -> None:
    sources = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path.read_text()
        for path in MODULES
    }
    assert not import_circles(sources)


PLANTED_CIRCLES: Mapping[str, Mapping[str, str]] = {
    "at module level": {"p": "", "p.a": "from p.b import B", "p.b": "import p.a"},
    "under TYPE_CHECKING": {
        "p.a": "from p.b import B",
        "p.b": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p.a import A",
    },
    "inside a function": {"p.a": "from p import b", "p.b": "def late():\n    from p.a import A"},
    "of three": {"p.a": "import p.b", "p.b": "import p.c", "p.c": "import p.a"},
    "through a package's __init__": {"p": "from p.a import A", "p.a": "from p import Contract"},
}


@pytest.mark.parametrize("sources", PLANTED_CIRCLES.values(), ids=PLANTED_CIRCLES)
def test_a_planted_circle_is_found(sources: Mapping[str, str]) -> None:
    assert import_circles(sources) == [sorted(name for name in sources if name != "p" or "import" in sources[name])]


def test_an_import_runs_the_package_of_what_it_imports() -> None:
    assert import_circles({"p": "import q", "q": "from p.a import A", "p.a": ""}) == [["p", "q"]]


def test_modules_that_share_what_they_import_are_no_circle() -> None:
    sources = {
        "p": "class Contract: ...",
        "p.a": "from p import Contract\nimport json",
        "p.b": "from p import Contract\nfrom p.a import A",
        "p.registry": "from p.a import A\nfrom p.b import B",
        "q": "from p.registry import ALL",
    }
    assert not import_circles(sources)


def test_files_and_folders_are_named_by_their_idea() -> None:
    names = [path.relative_to(PACKAGE).with_suffix("") for path in MODULES]
    assert not [str(name) for name in names if VAGUE_NAMES & set(name.parts)]


@pytest.mark.parametrize(
    ("rule", "folder", "source"),
    [
        (stage_order, "plan", "from tare.record.run_record import RunRecord"),
        (stage_order, "record", "from tare.run.clock import Clock"),
        (reading_without_running, "analyze", "from tare.run.resume import StudyState"),
        (stage_order, "analyze", "import tare.report.html"),
        (stage_order, "report", "from tare.knowledge.claim import Claim"),
        (stage_order, "study", "def late():\n    from tare import store"),
        (stage_order, "run", "from tare.cli import app"),
        (stage_order, "run", "from tare.doctor import checks"),
        (plugins_below_stages, "databases", "from tare.run import record"),
        (plugins_below_stages, "sites", "from tare.store import open_store"),
        (plugins_below_stages, "workloads", "from tare.record.run_record import RunRecord"),
        (machine_behind_host, "deployments", "import subprocess"),
        (machine_behind_host, "databases", "os.kill(1, 9)"),
        (machine_behind_host, "workloads", "open('/etc/passwd')"),
        (machine_behind_host, "deployments", "Path('/proc/1/stat').read_bytes()"),
        (machine_behind_host, "monitors", "Path('/tmp/x').write_text('')"),
        (output_in_cli_only, "run", "print('hello')"),
        (output_in_cli_only, "store", "import sys\nsys.exit(1)"),
        (output_in_cli_only, "report", "import sys\nsys.stdout.write('')"),
        (output_in_cli_only, "plan", "raise SystemExit(2)"),
        (output_in_cli_only, "plan", "def main():\n    print('not a program')"),
        (standard_library_only, "deployments", "from tare.errors import TareError"),
        (contract, "monitors", "class Program: ..."),
        (contract, "monitors", "class Monitor(Protocol): ...\nclass Reader(Protocol): ..."),
        (contract, "monitors", "class Monitor(Protocol): ...\nMONITORS = {}"),
        (contract, "monitors", "class Monitor(Protocol): ...\nfrom tare.monitors.registry import MONITORS"),
        (
            contract,
            "monitors",
            "class Monitor(Protocol):\n" + "".join(f"    def m{i}(self): ...\n" for i in range(6)),
        ),
        (registry, "monitors", "from tare.monitors.sar import Sar"),
        (registry, "monitors", "MONITORS = {}\nALIASES = {}"),
        (registry, "monitors", "monitors = {}"),
    ],
)
def test_the_rule_finds_what_breaks_it(rule: Rule, folder: str, source: str) -> None:
    assert list(rule(ast.parse(source), folder))


@pytest.mark.parametrize(
    ("rule", "folder", "source"),
    [
        (stage_order, "report", "from tare.analyze.estimate import Finding"),
        (stage_order, "knowledge", "from tare.analyze.estimate import Finding"),
        (stage_order, "cli", "from tare.report import html\nfrom tare.cli import app"),
        (plugins_below_stages, "deployments", "from tare.record.network_path import NetworkPath"),
        (machine_behind_host, "workloads", "def parse(stdout): return stdout.read_text()"),
        (machine_behind_host, "deployments", "host.read('/proc/1/stat')"),
        (machine_behind_host, "deployments", "Path(__file__).with_name('launcher.py').read_bytes()"),
        (machine_behind_host, "deployments", "HERE = Path(__file__).with_name('x.py')\nHERE.read_bytes()"),
        (output_in_cli_only, "cli", "print('hello')"),
        (output_in_cli_only, "study", "def main():\n    print('x')\nif __name__ == '__main__':\n    main()"),
        (contract, "deployments", "class D(Protocol): ...\nfrom tare.sites import Process"),
        (contract, "monitors", "class Monitor(Protocol[T]): ..."),
        (contract, "monitors", "class M(Protocol):\n" + "".join(f"  def m{i}(self): return\n" for i in range(6))),
        (registry, "monitors", "MONITORS: Mapping[str, Monitor] = {}"),
    ],
)
def test_the_rule_leaves_good_code_alone(rule: Rule, folder: str, source: str) -> None:
    assert not list(rule(ast.parse(source), folder))
