"""Public reports on a real engine: an import into a container's own layer, and an image's collation."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.reports.test_reports import ran, records, tare, traps

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(900)]

IMPORT = """\
format: 1
name: import
question: What does an import into a container's own layer cost?
sut:
  image: mariadb
  database: mariadb
  deployment: container
  network: bridge
  settings: {innodb_buffer_pool_size: 32M, innodb_log_file_size: 8M, skip_name_resolve: true}
client: {image: sysbench, deployment: bare, network: host}
workload: {name: sysbench, script: oltp_insert, tables: 1, table_size: 1000, threads: 4, measure_s: 10}
protocol: {name: fixed, blocks: 1, control: false}
factors:
  place:
    sets: [sut.storage.kind, sut.storage.copy_up]
    levels:
      bind: {}
      layer: {sut.storage.kind: layer}
      layer-copied-up: {sut.storage.kind: layer, sut.storage.copy_up: true}
baseline: bind
"""
COLLATION = """\
format: 1
name: collation
question: What does sorting text as people do cost?
sut:
  image: postgresql-15
  database: postgresql
  deployment: container
  network: bridge
  settings: {shared_buffers: 64MB}
client: {image: sysbench, deployment: bare, network: host}
workload: {name: sysbench, script: oltp_read_only, tables: 1, table_size: 1000, threads: 2, measure_s: 10}
protocol: {name: fixed, blocks: 1, control: false}
factors:
  collation:
    sets: [sut.settings.locale_provider, sut.settings.icu_locale]
    levels:
      bytes: {}
      english: {sut.settings.locale_provider: icu, sut.settings.icu_locale: en-US}
baseline: bytes
"""
SERVED = ("postgresql-15", "sysbench")


def test_an_import_into_a_layer_is_set_apart_by_its_trap_however_the_data_got_there(tmp_path: Path) -> None:
    ran(IMPORT, tmp_path)
    apart = traps(tmp_path)
    good = records(tmp_path)
    assert good.keys() == {"bind", "layer", "layer-copied-up"}
    for arm in ("layer", "layer-copied-up"):
        assert "data-in-layer" in apart[arm]
        written = good[arm].measurement
        assert written is not None
        assert written.operations
    assert "[data-in-layer]" in tare("report", "store", cwd=tmp_path)


def test_collation_is_a_factor_that_the_server_confirms(tmp_path: Path) -> None:
    ran(COLLATION, tmp_path, images=SERVED)
    in_force = {arm: run.effective or {} for arm, run in records(tmp_path).items()}
    assert in_force.keys() == {"bytes", "english"}
    assert (in_force["english"]["locale_provider"], in_force["english"]["icu_locale"]) == ("icu", "en-US")
    assert "icu_locale" not in in_force["bytes"]
    assert in_force["bytes"]["lc_collate"] == "C"


def test_a_collation_that_no_factor_names_is_refused(tmp_path: Path) -> None:
    arms = COLLATION.replace("    sets: [sut.settings.locale_provider, sut.settings.icu_locale]\n", "")
    assert arms != COLLATION
    text = ran(arms, tmp_path, code=5, images=SERVED)
    assert "icu_locale" in text
