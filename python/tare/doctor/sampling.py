"""What tare-probe can see here, determined by a trial: stacks, names of kernel functions, block requests."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from tare.doctor import Line, ok, warning
from tare.errors import RunFailed, TareError
from tare.sites import Host
from tare.sites.binaries import PROBE, find
from tare.sites.reading import last_line

_LIMIT_S = 15.0
_LOOK_S = "0.2"
_SILENT = "tare-probe ended with {code} and said nothing"
_NONE = "none"
_NO_GROUP = "no control group of process 1"
_INIT = ("--cgroup", "init=pid:1")
"""Control group whose block requests are counted in the trial; any group will do."""
STILL_STACKS = "`tare explain` then tells CPU time by side, and waiting, from the kernel's counters"
STILL_NAMES = "stacks then tell the code of processes and the kernel as a whole, by side, without components"
STILL_BLOCKS = "the SUT's bytes then come from its control group or /proc/PID/io, and `sut_io_source` says which"


def sampling_lines(host: Host) -> Iterator[Line]:
    """Lines on sampling; takes half a second.

    Runs are measured in any case: each line says what remains available.
    """
    binary = find(host, PROBE)
    if binary is None:
        yield warning("stacks", "tare-probe is missing", f"{PROBE.hint}; {STILL_STACKS}")
        return
    try:
        place = host.run(["mktemp", "-d"], timeout_s=_LIMIT_S).text.strip()
    except TareError as error:
        yield warning("stacks", f"cannot be tried: {error}", STILL_STACKS)
        return
    try:
        yield from _stacks(host, binary, place)
        yield _blocks(host, binary, place)
    finally:
        host.run(["rm", "-rf", place], timeout_s=_LIMIT_S, check=False)


def _stacks(host: Host, binary: str, place: str) -> Iterator[Line]:
    path = f"{place}/profile.parquet"
    why = _refused(host, (binary, "profile", "--out", path, "--hz", "199", "--duration", _LOOK_S))
    if why is not None:
        yield warning("stacks", why, STILL_STACKS)
        return
    try:
        missing = _profile_facts(host.read(path) or b"").get("kernel_symbols_missing")
    except (TareError, OSError, ValueError) as error:
        yield warning("stacks", f"tare-probe's profile cannot be read: {error}", STILL_STACKS)
        return
    yield ok("stacks", "works, all CPUs were sampled")
    if missing is None:
        yield ok("kernel functions", "have names")
    else:
        advice = "run as root, and set kernel.kptr_restrict to 0 or 1 with sysctl"
        yield warning("kernel functions", f"have no names: {missing}", f"{advice}; {STILL_NAMES}")


def _profile_facts(content: bytes) -> Mapping[str, Any]:
    import polars as pl  # slow to import, and nothing else of this command needs it

    try:
        facts = json.loads(pl.read_parquet_metadata(io.BytesIO(content))["tare.profile"])
    except (pl.exceptions.PolarsError, KeyError) as error:
        raise ValueError(str(error)) from error
    return dict(facts)


def _blocks(host: Host, binary: str, place: str) -> Line:
    name, advice = "block requests", f"run as root, on a kernel with BTF; {STILL_BLOCKS}"
    trace = f"{place}/trace"
    if why := _refused(host, (binary, "record", "--out", trace, *_INIT, "--duration", _LOOK_S)):
        hidden = "cannot be counted: no control group is visible here, as in a container"
        return warning(name, hidden if _NO_GROUP in why else why, advice)
    try:
        header = json.loads(host.read(f"{trace}/trace.json") or b"")["header"]
        source, refused = header["block_source"], header.get("block_refused")
    except (TareError, OSError, ValueError, KeyError, TypeError):
        return warning(name, "tare-probe's trace cannot be read", advice)
    if source == _NONE:
        return warning(
            name, f"of control groups are not counted: {refused or 'tare-probe does not say why'}", advice
        )
    return ok(name, "are counted by control group")


def _refused(host: Host, argv: tuple[str, ...]) -> str | None:
    """Why a program failed: its last line, without its name; `None` if it succeeded."""
    try:
        done = host.run(list(argv), timeout_s=_LIMIT_S, check=False)
    except RunFailed as error:
        return str(error)
    if done.code == 0:
        return None
    return last_line(done).removeprefix("tare-probe: ") if done.stderr.strip() else _SILENT.format(code=done.code)
