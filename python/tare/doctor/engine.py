"""What of an engine distorts results, from its facts."""

from __future__ import annotations

from collections.abc import Iterator

from tare.deployments.seccomp import forbidden_by_docker
from tare.doctor import Line, ok, warning
from tare.record.engine_facts import EngineFacts

_OWN_PROFILES = ("profile=default", "profile=builtin")
_OVERLAYS = frozenset({"overlay2", "overlay", "overlayfs", "fuse-overlayfs"})


def engine_lines(facts: EngineFacts) -> Iterator[Line]:
    """Lines on the facts of `engine_facts`."""
    yield _storage(facts.engine_storage_driver)
    yield _proxy(facts)
    yield ok("engine's cgroups", f"version {facts.engine_cgroup_version}, driver {facts.engine_cgroup_driver}")
    yield from _filter(facts)
    if facts.engine_rootless:
        yield warning(
            "engine's rights",
            "it runs without root: its network and cgroups differ from those of a bare process",
            "use an engine that runs as root, so that arms differ only in what the study names",
        )
    if any("name=userns" in option for option in facts.engine_security):
        yield warning(
            "engine's users",
            "it maps the users of containers to others (userns-remap), who may not enter the run directories "
            "of root's tare, nor own their files",
            "use an engine without userns-remap",
        )
    if running := facts.engine_containers_running:
        yield warning("other containers", f"{running} running", "stop them while measuring")


def _filter(facts: EngineFacts) -> Iterator[Line]:
    """Yield whether Docker's own seccomp filter lets a server use io_uring; nothing for another profile."""
    own = any("name=seccomp" in each and each.endswith(_OWN_PROFILES) for each in facts.engine_security)
    if facts.engine == "docker" and facts.engine_version is not None and own:
        forbidden = tuple(forbidden_by_docker(facts.engine_version, ()))
        rings = "forbids" if "io_uring_setup" in forbidden else "allows"
        others = ", ".join(call for call in forbidden if not call.startswith("io_uring"))
        yield ok(
            "engine's seccomp filter", f"Docker's own: {rings} io_uring; without capabilities forbids {others}"
        )


def _storage(driver: str | None) -> Line:
    if driver in _OVERLAYS:
        return ok("engine's storage", driver or "")
    return warning(
        "engine's storage",
        driver or "not reported",
        "use overlay2, as in published figures: see the engine's storage driver guide",
    )


def _proxy(facts: EngineFacts) -> Line:
    proxy, source = facts.engine_userland_proxy, facts.engine_userland_proxy_from
    if proxy is None:
        return warning(
            "userland-proxy",
            "cannot be read from the engine's process",
            "nothing: each run records what carried its published port",
        )
    carried = "docker-proxy carries" if proxy else "no docker-proxy: the firewall carries"
    return ok("userland-proxy", f"{'on' if proxy else 'off'} ({source}): {carried} ports published on 127.0.0.1")
