"""Content of seccomp filters: what the runtime was told, and which calls of databases that forbids."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tare.deployments.seccomp import CALLS, filter_of, forbidden_by_docker, numbers_of, parse
from tare.sites import Completed
from tare.sites.fake import FakeHost

ALLOW, ERRNO = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"


def section(*rules: dict[str, Any], default: str = ERRNO) -> dict[str, Any]:
    return {"defaultAction": default, "syscalls": list(rules)}


def allowing(*names: str, **more: Any) -> dict[str, Any]:
    return {"names": list(names), "action": ALLOW, **more}


def test_a_call_without_a_rule_follows_the_default() -> None:
    rest = [name for name in CALLS if name not in {"mbind", "userfaultfd"}]
    assert parse(section(allowing(*rest))).forbids == ("mbind", "userfaultfd")
    denied = {"names": ["io_uring_setup"], "action": ERRNO, "errnoRet": 1}
    assert parse(section(denied, default=ALLOW)).forbids == ("io_uring_setup",)
    assert parse({"defaultAction": "SCMP_ACT_LOG"}).forbids == ()


def test_rules_of_a_profile_apply_by_capabilities() -> None:
    rest = [name for name in CALLS if name not in {"mbind", "clone3"}]
    profile = section(
        allowing(*rest),
        allowing("mbind", includes={"caps": ["CAP_SYS_NICE"]}),
        allowing("clone3", includes={"caps": ["CAP_SYS_ADMIN"]}),
        {"names": ["clone3"], "action": ERRNO, "errnoRet": 38, "excludes": {"caps": ["CAP_SYS_ADMIN"]}},
    )
    assert parse(profile).forbids == ("mbind", "clone3")
    assert parse(profile, {23}).forbids == ("clone3",)
    assert parse(profile, {21, 23}).forbids == ()


def test_the_digest_is_of_the_rules_and_not_of_their_order() -> None:
    one = parse(section(allowing("mbind", "statx"), allowing("clone3")))
    assert parse(section(allowing("clone3"), allowing("statx"), allowing("mbind"))).digest == one.digest
    assert parse(section(allowing("mbind", "statx"))).digest != one.digest
    assert parse(section(allowing("mbind", "statx"), allowing("clone3"), default=ALLOW)).digest != one.digest


@pytest.mark.parametrize(
    ("version", "held", "forbidden", "allowed"),
    [
        ("20.10.24+dfsg1", set(), {"mbind", "perf_event_open", "userfaultfd"}, {"io_uring_setup", "statx"}),
        ("25.0.4", set(), {"io_uring_setup", "io_uring_enter", "io_uring_register"}, {"statx"}),
        ("28.5.2", {21, 23}, {"userfaultfd", "io_uring_setup"}, {"mbind", "perf_event_open", "clone3"}),
    ],
)
def test_dockers_own_filter_by_version(
    version: str, held: set[int], forbidden: set[str], allowed: set[str]
) -> None:
    calls = set(forbidden_by_docker(version, held))
    assert forbidden <= calls
    assert not allowed & calls


def test_capabilities_of_a_mask() -> None:
    assert 23 not in numbers_of("00000000a80425fb")
    assert {21, 23} <= numbers_of("000001ffffffffff")
    assert numbers_of(None) == frozenset()


def host(parent: str, **answers: str) -> FakeHost:
    """A server below the first process of its container, below the program that watches over it."""
    config = {"linux": {"seccomp": section(allowing("statx"))}}
    made = FakeHost(answers={("readlink",): Completed((), 0, b"/bundle\n"), ("cat",): Completed((), 1)})
    content = {
        "/proc/9/stat": "9 (a b) c) S 8 0", "/proc/8/comm": "sh", "/proc/8/stat": "8 (sh) S 7 0",
        "/proc/7/comm": parent, "/proc/7/stat": "7 (x) S 1 0", "/bundle/config.json": json.dumps(config), **answers,
    }  # fmt: skip
    made.files |= {name: value.encode() for name, value in content.items()}
    return made


def test_the_configuration_is_found_by_the_containers_shim_or_conmon() -> None:
    words = "conmon\0-c\0x\0-b\0/bundle\0-p\0y"
    by_shim = filter_of(host("containerd-shim"), 9)
    by_conmon = filter_of(host("conmon", **{"/proc/7/cmdline": words}), 9)
    assert by_shim is not None
    assert by_shim == by_conmon
    assert "mbind" in by_shim.forbids
    assert "statx" not in by_shim.forbids


def test_a_process_without_a_container_or_with_an_unreadable_one_has_no_known_filter() -> None:
    assert filter_of(host("systemd"), 9) is None
    assert filter_of(host("containerd-shim", **{"/bundle/config.json": "{"}), 9) is None
    assert filter_of(FakeHost(), 9) is None
