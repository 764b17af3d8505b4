"""In a container as an engine makes it, tare-probe cannot sample stacks: it says so, and what refuses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from docker import DockerClient

from tare.deployments.container.once import in_container, tree
from tare.doctor import Line, Verdict
from tare.doctor.sampling import sampling_lines
from tare.sites import Completed
from tare.sites.binaries import PROBE, find
from tare.sites.local import LocalHost

pytestmark = [pytest.mark.engine, pytest.mark.apart]


class InContainer(LocalHost):
    """This machine, but that tare-probe, a static program, looks from a container of its own each time."""

    def __init__(self, engine: DockerClient, binary: str) -> None:
        super().__init__()
        self.engine, self.binary = engine, binary

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        check: bool = True,
    ) -> Completed:
        if argv[0] != self.binary or "--help" in argv:
            return super().run(argv, timeout_s=timeout_s, stdin=stdin, env=env, check=check)
        place = str(Path(argv[argv.index("--out") + 1]).parent)
        return in_container(
            self, self.engine, tree({"/tare-probe": Path(self.binary).read_bytes()}, 0o755),
            ["/tare-probe", *argv[1:]], prefix="tare-test", timeout_s=timeout_s,
            network_mode="none", volumes={place: {"bind": place, "mode": "rw"}},
        )  # fmt: skip


@pytest.fixture
def lines(engine: DockerClient) -> dict[str, Line]:
    binary = find(LocalHost(), PROBE)
    assert binary is not None
    return {line.name: line for line in sampling_lines(InContainer(engine, binary))}


def test_in_a_container_stacks_are_refused_and_what_is_still_told_is_said(lines: Mapping[str, Line]) -> None:
    stacks = lines["stacks"]
    assert stacks.verdict is Verdict.WARNING
    assert "cannot be sampled" in stacks.found
    assert "in a container the engine's seccomp filter refuses it too" in stacks.found
    assert "CPU time by side" in (stacks.advice or "")


def test_in_a_container_block_requests_are_not_counted_and_why_is_said(lines: Mapping[str, Line]) -> None:
    blocks = lines["block requests"]
    assert blocks.verdict is Verdict.WARNING
    assert "no control group is visible here, as in a container" in blocks.found
    assert "the SUT's bytes then come from" in (blocks.advice or "")
