"""Write the tables of docs/reference/record.md and its neighbours from the docstrings of a record's types.

    python -m tools.record_reference [--check]

`--check` writes nothing and fails if a page differs from what would be written.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tare.deployments import Endpoint
from tare.record.between import Between, Link, Offset, RoundTrip, Route, Sounding, Throughput
from tare.record.chronicle import ServerEvent, ServerReport
from tare.record.duet import DuetTimes, SwapHalf
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts
from tare.record.image_facts import ImageFacts
from tare.record.load_time import LoadTime
from tare.record.loaded_data import LoadedData, MadeBy
from tare.record.made_by import ContainerdFacts, GuestClock, GuestContainer, GuestFacts, PodFacts
from tare.record.measurement import (
    Encryption,
    Latency,
    LatencyParts,
    Measurement,
    Operation,
    Rung,
    Sustained,
    TurnCounts,
    Window,
)
from tare.record.monitor import MonitorFacts
from tare.record.network_path import Carrier, NetworkPath, Wire
from tare.record.node import NodeFacts
from tare.record.observation import Observation, Parity
from tare.record.pilot import Choice, Tried, TurnChoice
from tare.record.turns import Rotation
from tare.record.usage import DiskLimit, DiskUse, Saturation, Usage
from tare.sites import Process

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
Part = tuple[str, type]
"""Path of a part in its section ("" for the section itself), and its type."""
SECTIONS: Mapping[str, Mapping[str, Sequence[Part]]] = {
    "between.md": {
        "`between`": (
            ("", Between),
            ("before.", Sounding),
            ("before.clocks.", Offset),
            ("before.round_trip.", RoundTrip),
            ("throughput.", Throughput),
            ("sides.SIDE.", Route),
            ("links[].", Link),
        ),
    },
    "facts.md": {"Host": (("", HostFacts),), "Engine": (("", EngineFacts),)},
    "measurement.md": {
        "`measurement`": (
            ("", Measurement),
            ("latency.", Latency),
            ("windows[].", Window),
            ("by_operation.KIND.", Operation),
            ("parts.PERCENTILE.", LatencyParts),
            ("encryption.", Encryption),
            ("sustained.", Sustained),
            ("sustained.rungs[].", Rung),
            ("turns.", TurnCounts),
        ),
    },
    "monitors.md": {"`monitors.NAME` in the record": (("", MonitorFacts),)},
    "record.md": {
        "`parity`": (("", Parity), ("SIDE.", Observation)),
        "Pods and virtual machines": (
            ("SIDE.containerd.", ContainerdFacts),
            ("SIDE.pod.", PodFacts),
            ("SIDE.guest.", GuestFacts),
            ("SIDE.guest.clock.", GuestClock),
            ("SIDE.guest.container.", GuestContainer),
        ),
        "`path`": (
            ("", NetworkPath),
            ("client_dialled.", Endpoint),
            ("proxy.", Process),
            ("wire.", Wire),
            ("carrier.", Carrier),
        ),
        "`images`": (("SIDE.", ImageFacts),),
        "`snapshot`": (("", LoadedData), ("made_by.SIDE.", MadeBy)),
        "`chronicle`": (("", ServerReport), ("events[].", ServerEvent)),
        "`pilot`": (("", Choice),),
        "Choice of turns": (("", TurnChoice), ("tried[].", Tried)),
        "`rotation`": (("", Rotation),),
        "`nodes`": (("", NodeFacts),),
        "`usage`": (
            ("", Usage),
            ("driven.", LoadTime),
            ("saturation.SIDE.", Saturation),
            ("disk.", DiskUse),
            ("disk_limit.", DiskLimit),
        ),
        "`duet`": (("", DuetTimes), ("halves[].", SwapHalf)),
    },
}
"""Page → heading → the types that its table shows, in order."""


def meanings(kind: type) -> Iterator[tuple[str, str]]:
    """Yield each field of a class with its docstring. Raises `ValueError` for a field without one."""
    (tree,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(tree, ast.ClassDef)
    for field, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        match below:
            case ast.Expr(ast.Constant(str(text))):
                yield field.target.id, " ".join(text.split())
            case _:
                raise ValueError(f"{kind.__name__}.{field.target.id} has no docstring")


def section(parts: Sequence[Part]) -> str:
    """Return a section below its heading: the docstring of its first type, and one table."""
    (_, whole), *_ = parts
    intro = re.split(r"\n\s*\n", inspect.cleandoc(whole.__doc__ or ""))
    rows = [f"| `{path}{name}` | {meaning} |" for path, kind in parts for name, meaning in meanings(kind)]
    return "\n".join([*(f"{part}\n" for part in intro), "| key | meaning |", "|---|---|", *rows, ""])


def renewed(name: str) -> str:
    """Return a page with its generated sections renewed."""
    text = (REFERENCE / name).read_text()
    for heading, parts in SECTIONS[name].items():
        pattern = re.compile(rf"(^##+ {re.escape(heading)}\n\n).*?(?=^#+ |\Z)", re.MULTILINE | re.DOTALL)
        text, count = pattern.subn(lambda found, parts=parts: f"{found[1]}{section(parts)}\n", text)  # type: ignore[misc] # the default binds the loop's value
        if count != 1:
            raise ValueError(f"docs/reference/{name} has {count} sections {heading}")
    return text


def main() -> None:
    """Write the pages, or check them."""
    for name in SECTIONS:
        before, after = (REFERENCE / name).read_text(), renewed(name)
        if "--check" not in sys.argv[1:]:
            (REFERENCE / name).write_text(after)
        elif after != before:
            sys.exit(f"docs/reference/{name} differs from the record's docstrings: `make schemas` renews it")


if __name__ == "__main__":
    main()
