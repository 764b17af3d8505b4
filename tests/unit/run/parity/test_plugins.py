"""Runs of one study use the same versions of other packages' plug-ins."""

from __future__ import annotations

from tests.unit.run.parity.test_compare import record, study

from tare.record.run_record import RunRecord
from tare.run.parity.compare import differences


def test_the_version_of_a_plugin_is_held_equal_between_runs() -> None:
    def of(version: str | None, arm: str = "host") -> RunRecord:
        plugins = None if version is None else {"database tiny": {"package": "tare-tiny", "version": version}}
        return record(arm).model_copy(update={"plugins": plugins})

    (difference,) = differences(study(), of("1.0"), of("1.1"))
    assert str(difference) == "plug-in: database tiny: tare-tiny 1.0 in host, tare-tiny 1.1 in host"
    assert not differences(study(), of("1.0"), of("1.0"))
    assert not differences(study(), of(None), of("1.0"))
