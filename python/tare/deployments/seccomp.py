"""Content of the seccomp filter around a container's program, and which calls of databases it forbids.

The kernel shows only that there is a filter. Its content is in the configuration that the engine gave to the OCI
runtime: `config.json` in the container's bundle, which is the working directory of containerd's shim and an
argument of conmon. Root alone may read it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tare.sites import Host
from tare.sites.reading import answer, as_int, text

CALLS = (
    "io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup", "mbind", "set_mempolicy", "get_mempolicy",
    "move_pages", "perf_event_open", "userfaultfd", "name_to_handle_at", "process_vm_readv", "bpf", "clone3",
    "statx", "membarrier", "mlock2", "memfd_create", "ioprio_set", "sched_setattr", "sched_setscheduler", "preadv2",
    "copy_file_range", "fallocate", "sync_file_range",
)  # fmt: skip
"""Calls that databases, their libraries and their tools make, and that some engine's filter has forbidden."""
_SINCE_FORBIDS_IO_URING = 25
"""Docker's major version whose default filter no longer allows io_uring (moby/moby#46762)."""
_IO_URING = tuple(name for name in CALLS if name.startswith("io_uring"))
_SYS_ADMIN, _SYS_NICE, _PERFMON, _BPF = 21, 23, 38, 39
"""Capabilities (include/uapi/linux/capability.h)."""
_NAMES: Mapping[str, int] = {
    "CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": _SYS_ADMIN, "CAP_SYS_NICE": _SYS_NICE, "CAP_PERFMON": _PERFMON,
    "CAP_BPF": _BPF,
}  # fmt: skip
_WITH: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("mbind", "set_mempolicy", "get_mempolicy"), (_SYS_NICE,)),
    "perf_event_open": (_SYS_ADMIN, _PERFMON),
    "bpf": (_SYS_ADMIN, _BPF),
    "clone3": (_SYS_ADMIN,),
    **dict.fromkeys(("move_pages", "userfaultfd"), ()),
}
"""Calls that the default filter of every version of Docker allows only with one of these capabilities."""
_SHIMS, _CONMON = "containerd-shim", "conmon"
_MOST_PARENTS = 12


@dataclass(frozen=True)
class Filter:
    """A seccomp filter. `digest`: of its rules, whatever their order. `forbids`: those of `CALLS`."""

    digest: str
    forbids: tuple[str, ...]


def filter_of(host: Host, pid: int) -> Filter | None:
    """Filter of the container that a process is in, as its runtime was told; `None` if that cannot be read."""
    bundle = _bundle(host, pid)
    if bundle is None:
        return None
    try:
        config = json.loads(text(host, f"{bundle}/config.json") or "")
    except ValueError:
        return None
    section = (config.get("linux") or {}).get("seccomp") if isinstance(config, dict) else None
    return None if section is None else parse(section)


def _bundle(host: Host, pid: int) -> str | None:
    """Directory of the container's configuration, by the program that watches over its first process."""
    for _ in range(_MOST_PARENTS):
        fields = (text(host, f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
        parent = as_int(fields[1]) if len(fields) > 1 else None
        if parent is None or parent <= 1:
            return None
        name, pid = text(host, f"/proc/{parent}/comm") or "", parent
        if name.startswith(_SHIMS):
            return answer(host, ["readlink", f"/proc/{parent}/cwd"]).strip() or None
        if name == _CONMON:
            words = (text(host, f"/proc/{parent}/cmdline") or "").split("\0")
            return next((after for word, after in pairwise(words) if word in ("-b", "--bundle")), None)
    return None


def parse(section: Mapping[str, Any], capabilities: Collection[int] = ()) -> Filter:
    """Read `linux.seccomp` of an OCI configuration, or a profile as engines take it.

    `capabilities`: those of the program, by which a profile's rules apply; a configuration has no such conditions.
    """
    rules = [each for each in section.get("syscalls") or () if _applies(each, capabilities)]
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for rule in rules:
        for name in rule.get("names") or (rule.get("name"),):
            by_name.setdefault(str(name), []).append(rule)
    default = str(section.get("defaultAction"))
    forbids = tuple(call for call in CALLS if not _allowed(by_name.get(call, ()), default))
    return Filter(_digest(section, by_name), forbids)


def _applies(rule: Mapping[str, Any], capabilities: Collection[int]) -> bool:
    """Whether a profile's rule is for these capabilities; those that a rule may name and tare knows."""
    includes, excludes = (
        {_NAMES.get(name, -1) for name in (rule.get(key) or {}).get("caps") or ()}
        for key in ("includes", "excludes")
    )
    return includes <= set(capabilities) and not excludes & set(capabilities)


def _allowed(rules: Collection[Mapping[str, Any]], default: str) -> bool:
    """Whether a call is allowed for at least some arguments."""
    return any(_allows(str(rule.get("action"))) for rule in rules) or (_allows(default) and not rules)


def _allows(action: str) -> bool:
    return action in ("SCMP_ACT_ALLOW", "SCMP_ACT_LOG")


def _digest(section: Mapping[str, Any], by_name: Mapping[str, list[Mapping[str, Any]]]) -> str:
    kept = {
        "default": [section.get("defaultAction"), section.get("defaultErrnoRet")],
        "calls": {name: sorted(map(_rule, rules)) for name, rules in by_name.items()},
    }
    return f"sha256:{hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()}"


def _rule(rule: Mapping[str, Any]) -> str:
    return json.dumps([rule.get("action"), rule.get("errnoRet"), rule.get("args") or []], sort_keys=True)


def forbidden_by_docker(version: str, capabilities: Collection[int]) -> Iterator[str]:
    """Yield the calls that Docker's own filter forbids, by its version and the program's capabilities."""
    major = as_int(version.partition(".")[0])
    if major is not None and major >= _SINCE_FORBIDS_IO_URING:
        yield from _IO_URING
    yield from (call for call in CALLS if call in _WITH and not set(_WITH[call]) & set(capabilities))


def numbers_of(mask: str | None) -> frozenset[int]:
    """Capabilities of a mask such as `CapBnd` of /proc/PID/status."""
    bits = int(mask, 16) if mask else 0
    return frozenset(bit for bit in range(64) if bits >> bit & 1)
