"""A seccomp profile of containers-common, or of Docker, as the filter of one container. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ARCHITECTURE, _SECCOMP_NAME = "amd64", "SCMP_ARCH_X86_64"


def seccomp_of(profile: Mapping[str, Any], capabilities: frozenset[str], kernel: tuple[int, ...]) -> dict[str, Any]:
    """`linux.seccomp` of the OCI runtime specification: the rules that hold for these capabilities on x86-64.

    `kernel`: the version, of which rules may ask for a least one.
    """
    told = {
        "defaultAction": profile["defaultAction"],
        "architectures": _architectures(profile),
        "syscalls": [
            _rule(rule)
            for rule in profile["syscalls"]
            if _holds(rule.get("includes") or {}, capabilities, kernel)
            and not _excluded(rule.get("excludes") or {}, capabilities, kernel)
        ],
    }
    if (errno := profile.get("defaultErrnoRet")) is not None:
        told["defaultErrnoRet"] = errno
    return told


def _architectures(profile: Mapping[str, Any]) -> list[str]:
    own = [each for each in profile["archMap"] if each["architecture"] == _SECCOMP_NAME]
    return [_SECCOMP_NAME, *(other for each in own for other in each["subArchitectures"])]


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    kept = {"names": rule["names"], "action": rule["action"]}
    if rule.get("args"):
        kept["args"] = rule["args"]
    if rule.get("errnoRet") is not None:
        kept["errnoRet"] = rule["errnoRet"]
    return kept


def _holds(asked: Mapping[str, Any], capabilities: frozenset[str], kernel: tuple[int, ...]) -> bool:
    """All that a rule is for; what it does not name, it is for any of."""
    return (
        set(asked.get("caps") or ()) <= capabilities
        and (not asked.get("arches") or _ARCHITECTURE in asked["arches"])
        and (not asked.get("minKernel") or kernel >= _version(asked["minKernel"]))
    )


def _excluded(asked: Mapping[str, Any], capabilities: frozenset[str], kernel: tuple[int, ...]) -> bool:
    """Any of what a rule is not for."""
    return (
        bool(set(asked.get("caps") or ()) & capabilities)
        or _ARCHITECTURE in (asked.get("arches") or ())
        or bool(asked.get("minKernel") and kernel >= _version(asked["minKernel"]))
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))
