from __future__ import annotations

from dataclasses import replace

from tare.calibrate.summary import identity_of
from tare.record.engine_facts import EngineFacts
from tare.record.host_facts import HostFacts

HOST = HostFacts(cpu_model="A CPU", cpu_count=2, memory_total_bytes=25_000_000_000, kernel="6.1", boot_id="x")
ENGINE = EngineFacts(engine="docker", engine_version="20.10")


def test_a_boot_changes_nothing() -> None:
    again = identity_of(replace(HOST, boot_id="y", memory_total_bytes=25_001_000_000), ENGINE)
    assert again == identity_of(HOST, ENGINE)


def test_another_kernel_or_engine_is_the_same_machine_under_other_versions() -> None:
    old, new = identity_of(HOST, ENGINE), identity_of(replace(HOST, kernel="6.2"), ENGINE)
    assert old.machine_key == new.machine_key
    assert old.versions_key != new.versions_key
    assert old.versions_key != identity_of(HOST, None).versions_key


def test_other_hardware_is_another_machine() -> None:
    assert identity_of(HOST, ENGINE).machine_key != identity_of(replace(HOST, cpu_count=4), ENGINE).machine_key


def test_what_is_not_known_stays_unknown() -> None:
    assert identity_of(HostFacts(), None).memory_gib is None
