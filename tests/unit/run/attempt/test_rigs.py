"""The tests' own machines of fakes leave nothing behind, however a test ends."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from tests.unit.run.conftest import a_rig, fake_image

from tare.deployments import Task
from tare.deployments.fake import FakeDeployment
from tare.sites import Output
from tare.sites.local import LocalHost
from tare.sites.process import alive


def test_no_process_of_a_test_that_failed_part_way_remains(tmp_path: Path) -> None:
    output, host = Output(str(tmp_path / "out"), str(tmp_path / "err")), LocalHost()
    task = Task("t", fake_image("tar:fake"), ("sh", "-c", "echo $$; exec sleep 600"), output, "tare/test")
    with suppress(AssertionError), a_rig(tmp_path) as rig:
        process = FakeDeployment(host, rig.machine.ledger).start(task).process
        while not (program := (tmp_path / "out").read_text().strip()):
            time.sleep(0.01)
        raise AssertionError("part-way")
    while alive(host, process) or Path(f"/proc/{program}").exists():
        time.sleep(0.01)
