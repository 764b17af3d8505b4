"""Every way to get a study wrong gives one error with file, line, key path and a hint."""

# ruff: noqa: E501 - the cases are a table, and wrapping more of its rows would hide that
from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from tare.errors import StudyError
from tare.study.reading.load import loads
from tare.study.registry import Registry


@dataclass(frozen=True)
class Case:
    """One mistake: `old` → `new` in the right study. `at`: text on the line that the error has to name."""

    name: str
    old: str
    new: str
    at: str
    key: str
    what: str
    hint: str | None = None


CASES = [
    Case("unknown_key", "question:", "qestion:", "qestion:", "qestion", "unknown key", 'did you mean "question"?'),
    Case("unknown_key_in_sut", "  network: host", "  netwerk: host", "netwerk", "sut.netwerk", "unknown key",
         'did you mean "network"?'),
    Case("unknown_key_in_limits", 'cpus: "0"', 'cpu: "0"', "cpu:", "sut.limits.cpu", "unknown key",
         'did you mean "cpus"?'),
    Case("unknown_workload_parameter", "  tables: 8", "  table: 8", "table: 8", "workload.table", "unknown key",
         'did you mean "tables"?'),
    Case("unknown_key_in_protocol", "blocks: 5", "block: 5", "block: 5", "protocol.block", "unknown key",
         'did you mean "blocks"?'),
    Case("unknown_key_in_factor", "    levels: [1, 16]", "    level: [1, 16]", "level: [1", "factors.load.level",
         "unknown key", 'did you mean "levels"?'),
    Case("unknown_key_in_scale", "    set:\n      workload", "    sets:\n      workload", "sets:\n", "scales.demo.sets",
         "unknown key", 'did you mean "set"?'),
    Case("unknown_key_in_published", "where: text}", "page: text, where: text}", "page:", "published[0].page", "unknown key"),
    Case("duplicate_key", "  tables: 8\n", "  tables: 8\n  tables: 9\n", "tables: 9", "workload.tables",
         "duplicate key", "the first is on line"),
    Case("missing_key", "question: What does a network path cost?\n", "", "format: 1", "question", "missing"),
    Case("missing_key_in_sut", "  image: mariadb\n  database", "  database", "sut:", "sut.image", "missing"),
    Case("missing_workload_name", "  name: load\n", "", "workload:", "workload.name", "missing"),
    Case("missing_measure_s", "  measure_s: 1800\n", "", "workload:", "workload.measure_s", "missing"),
    Case("text_for_number", "tables: 8", 'tables: "8"', 'tables: "8"', "workload.tables",
         "expected a whole number, got '8'", "write a plain number"),
    Case("unit_in_number", "measure_s: 1800", "measure_s: 30m", "measure_s", "workload.measure_s",
         "expected a number, got '30m'", "without quotes or unit"),
    Case("fraction_for_whole", "tables: 8", "tables: 8.5", "tables: 8.5", "workload.tables", "expected a whole number, got 8.5"),
    Case("number_for_text", 'cpus: "0"', "cpus: 0", "cpus: 0", "sut.limits.cpus", "expected text, got 0",
         "quote it if it is meant as text"),
    Case("truth_for_number", "tables: 8", "tables: true", "tables: true", "workload.tables", "expected a whole number, got true"),
    Case("yes_is_text", "tables: 8", "tables: yes", "tables: yes", "workload.tables", "expected a whole number, got 'yes'"),
    Case("format_true", "format: 1", "format: true", "format: true", "format", "expected 1, got true"),
    Case("endless_measure", "measure_s: 1800", "measure_s: 1.0e308", "measure_s", "workload.measure_s",
         "must be at most 31622400, got 1e+308"),
    Case("twenty_nines", "measure_s: 1800", "measure_s: 99999999999999999999", "measure_s", "workload.measure_s",
         "must be at most 31622400, got 99999999999999999999"),
    Case("endless_study", "protocol: {name: interleave, blocks: 5, retries: 1, seed: 7}",
         "protocol: {name: interleave, blocks: 40, max_minutes: 1.0e308}", "protocol: {", "protocol.max_minutes",
         "must be at most 527040, got 1e+308"),
    Case("absurd_quota", 'cpus: "0"', "cpu_quota: 1.0e308", "cpu_quota", "sut.limits.cpu_quota", "must be at most 8192"),
    Case("list_for_mapping", "protocol: {name: interleave, blocks: 5, retries: 1, seed: 7}", "protocol: [1]",
         "protocol: [1]", "protocol", "expected a mapping, got a list"),
    Case("text_for_mapping", "client:\n  image: mariadb\n  deployment: bare", "client: mariadb", "client:", "client",
         "expected a mapping, got 'mariadb'"),
    Case("nothing_for_mapping", "factors:\n", "factors:\nextra:\n", "factors:\n", "factors", "expected a mapping, got nothing"),
    Case("mapping_for_setting", "O_DIRECT}", "{a: 1}}", "{a: 1}}", "sut.settings.innodb_flush_method",
         "expected text, a whole number, a number or true or false, got a mapping"),
    Case("not_a_finite_number", "measure_s: 1800", "measure_s: .inf", "measure_s", "workload.measure_s", "finite"),
    Case("setting_of_tare_s_own", "O_DIRECT}", "O_DIRECT, socket: x}", "socket", "sut.settings.socket", "not for studies",
         "remove it"),
    Case("patched_setting_of_tare_s_own", "host: {}", "host: {sut.settings.socket: x}", "socket",
         "factors.path.levels.host.sut.settings.socket", "not for studies"),
    Case("parameters_that_do_not_go_together", "workload.measure_s: 4", "workload.measure_s: 0.5", "workload:", "workload",
         "a window is longer than the measure phase", "as set by scales.demo.set.workload.measure_s on line 38"),
    Case("duration_of_0", "measure_s: 1800", "measure_s: 0", "measure_s: 0", "workload.measure_s", "greater than 0, got 0"),
    Case("negative_warm_up", "measure_s: 1800", "measure_s: 1\n  warmup_s: -1", "warmup_s", "workload.warmup_s",
         "at least 0, got -1"),
    Case("no_blocks", "blocks: 5", "blocks: 0", "blocks: 0", "protocol.blocks", "greater than 0"),
    Case("far_too_many_blocks", "blocks: 5", "blocks: 1000000000", "blocks: 1", "protocol.blocks", "at most 1000"),
    Case("far_too_many_arms", "levels: [1, 16]", f"levels: {list(range(1, 300))}", "factors:", "factors",
         "1196 arms are more than the limit of 1000", "vary less"),
    Case("negative_retries", "retries: 1", "retries: -1", "retries: -1", "protocol.retries", "at least 0"),
    Case("cpu_list", 'cpus: "0"', 'cpus: "a"', 'cpus: "a"', "sut.limits.cpus", "'a' is not a CPU list"),
    Case("cpu_list_backwards", 'cpus: "0"', 'cpus: "0,3-1"', 'cpus: "0,3-1"', "sut.limits.cpus", "'3-1' ends before it begins"),
    Case("cpu_list_without_end", 'cpus: "0"', 'cpus: "0-99999999999"', 'cpus: "0-', "sut.limits.cpus",
         "no machine has a CPU 99999999999"),
    Case("less_memory_than_any_container", "memory: 512M", "memory: 6143K", "memory", "sut.limits.memory",
         "must be at least 6M, got '6143K'"),
    Case("less_quota_than_the_kernel_has", 'cpus: "0"', "cpu_quota: 0.009", "cpu_quota", "sut.limits.cpu_quota",
         "must be at least 0.01, got 0.009"),
    Case("key_with_control_characters", "question:", '"\\e[31m\\n":', "31m", "\\x1b[31m\\n", "unknown key"),
    Case("memory_size", "memory: 512M", "memory: 512MB", "memory", "sut.limits.memory", "'512MB' is not a size"),
    Case("choice_of_workload", "  tables: 8", "  script: read_olny", "script", "workload.script",
         "unknown value 'read_olny'", 'did you mean "read_only"?'),
    Case("name_not_plain", "name: paths", "name: a/b", "name: a/b", "name", "'a/b' is not a plain name"),
    Case("empty_question", "What does a network path cost?", '"  "', "question", "question", "is not text with at least one visible character"),
    Case("newer_format", "format: 1", "format: 2", "format: 2", "format", "format 2 is newer", "use a newer tare"),
    Case("older_format", "format: 1", "format: 0", "format: 0", "format", "expected 1, got 0"),
    Case("unknown_network", "  network: host", "  network: hots", "network: hots", "sut.network", "unknown value 'hots'",
         'did you mean "host"?'),
    Case("unknown_database", "database: mariadb", "database: mariabd", "database", "sut.database",
         "there is no database 'mariabd'", 'did you mean "mariadb"?'),
    Case("unknown_deployment", "deployment: container", "deployment: contaner", "contaner", "sut.deployment",
         "there is no deployment 'contaner'", 'did you mean "container"?'),
    Case("unknown_workload", "name: load", "name: laod", "name: laod", "workload.name", "there is no workload 'laod'",
         'did you mean "load"?'),
    Case("workload_name_of_wrong_type", "name: load", "name: [load]", "name: [", "workload.name", "expected text, got a list"),
    Case("unknown_protocol", "name: interleave", "name: interleaved", "interleaved", "protocol.name",
         "there is no protocol 'interleaved'", 'did you mean "interleave"?'),
    Case("unknown_recipe", "image: mariadb\n  database", "image: mariadv\n  database", "mariadv", "sut.image",
         "there is no image recipe 'mariadv'", 'did you mean "mariadb"?'),
    Case("image_reference", "image: mariadb\n  database", "image: ftp://x/y\n  database", "ftp", "sut.image",
         "not an image reference", "docker://REF"),
    Case("empty_docker_reference", "image: mariadb\n  database", 'image: "docker://"\n  database', "docker:", "sut.image",
         "not an image reference"),
    Case("empty_factor", "levels: [1, 16]", "levels: []", "levels: []", "factors.load.levels", "must not be empty"),
    Case("no_factors", "exclude:", "exclude: []\nx:", "x:", "x", "unknown key"),
    Case("level_twice", "levels: [1, 16]", "levels: [1, 16, 1]", "levels: [1, 16, 1]", "factors.load.levels[2]", "listed twice"),
    Case("level_name_not_plain", "levels: [1, 16]", 'levels: ["a b", 16]', "a b", "factors.load.levels[0]",
         "cannot be a level's name", "NAME: VALUE"),
    Case("level_of_list_type", "levels: [1, 16]", "levels: [[1], 16]", "[[1]", "factors.load.levels[0]",
         "expected text, a whole number, a number or true or false, got a list"),
    Case("level_patch_is_no_mapping", "host: {}", "host: 3", "host: 3", "factors.path.levels.host",
         "expected a mapping, got 3"),
    Case("patch_of_unknown_key", "bridge: {sut.network:", "bridge: {sut.netwrk:", "netwrk",
         "factors.path.levels.bridge.sut.netwrk", "unknown key", 'did you mean "network"?'),
    Case("patch_of_unknown_section", "bridge: {sut.network:", "bridge: {sot.network:", "sot.network",
         "factors.path.levels.bridge.sot.network", "there is no 'sot' to patch", 'did you mean "sut"?'),
    Case("patch_of_whole_section", "bridge: {sut.network: bridge}", "bridge: {sut: {network: bridge}}", "{sut: {",
         "factors.path.levels.bridge.sut", "one dotted key"),
    Case("patch_below_a_value", "bridge: {sut.network:", "bridge: {sut.image.tag:", "image.tag",
         "factors.path.levels.bridge.sut.image.tag", "sut.image holds one value"),
    Case("patch_with_unknown_value", "sut.network: bridge", "sut.network: brige", "brige",
         "factors.path.levels.bridge.sut.network", "unknown value 'brige'", 'did you mean "bridge"?'),
    Case("patch_with_unknown_plugin", "{sut.deployment: bare}", "{sut.deployment: bear}", "bear",
         "factors.path.levels.bare.sut.deployment", "there is no deployment 'bear'", 'did you mean "bare"?'),
    Case("level_of_wrong_value", "levels: [1, 16]", "levels: [1, 16, 0]", "levels: [1",
         "factors.load.levels[2]", "greater than 0"),
    Case("factor_sets_unknown_key", "sets: workload.threads", "sets: workload.thread", "levels: [1, 16]",
         "factors.load.levels[0]", "unknown key", 'did you mean "threads"?'),
    Case("level_may_not_patch_protocol", "host: {}", "host: {protocol.blocks: 3}", "protocol.blocks: 3",
         "factors.path.levels.host.protocol.blocks", "there is no 'protocol' to patch"),
    Case("two_factors_set_one_key", "sets: workload.threads\n    levels: [1, 16]",
         'sets: sut.network\n    levels: [host, "16"]', "  load:", "factors.load", "which factor 'path' sets too"),
    Case("exclude_unknown_factor", "- {path: published, load: 1}", "- {paht: published}", "paht", "exclude[0].paht",
         "there is no factor 'paht'", 'did you mean "path"?'),
    Case("exclude_unknown_level", "- {path: published, load: 1}", "- {path: publisht}", "publisht", "exclude[0].path",
         "has no level 'publisht'", 'did you mean "published"?'),
    Case("exclude_twice", "- {path: published, load: 1}", "- {path: published, load: 1}\n  - {load: 1, path: published}",
         "- {load: 1,", "exclude[1]", "excludes nothing"),
    Case("exclude_a_whole_level", "- {path: published, load: 1}", "- {path: host}", "host: {}",
         "factors.path.levels.host", "no arm uses the level 'host'"),
    Case("baseline_no_arm_bears", "baseline: {path: bare, load: 16}", "baseline: bear", "baseline: bear", "baseline",
         "no arm is called 'bear'"),
    Case("baseline_close_to_an_arm", "baseline: {path: bare, load: 16}", "baseline: bare-load16", "baseline: bare",
         "baseline", "no arm is called", 'did you mean "bare-load-16"?'),
    Case("baseline_excluded", "baseline: {path: bare, load: 16}", "baseline: {path: published, load: 1}", "baseline:",
         "baseline", "no arm has these levels"),
    Case("baseline_that_an_arm_lacks", "baseline: {path: bare, load: 16}", "baseline: {path: published}", "baseline:",
         "baseline", "the arm 'bare-load-1' has no baseline", "do not exclude the arm"),
    Case("baseline_unknown_level", "baseline: {path: bare, load: 16}", "baseline: {path: bare, load: 15}", "baseline:",
         "baseline.load", "has no level '15'"),
    Case("published_unknown_factor", "- {levels: {path: bare, load: 16}", "- {levels: {paths: bare, load: 16}", "paths: bare",
         "published[0].levels.paths", "there is no factor 'paths'", 'did you mean "path"?'),
    Case("published_excluded_arm", "- {levels: {path: bare, load: 16}", "- {levels: {path: published, load: 1}",
         "- {levels: {path: published, load: 1}", "published[0].levels", "no arm has these levels"),
    Case("published_twice", "- {levels: {path: published, load: 16}", "- {levels: {path: bare, load: 16}", "value: 2200",
         "published[1]", "a second throughput for the same arm"),
    Case("published_without_unit", "value: 2200, unit: tps", "value: 2200", "value: 2200", "published[1]", "without its unit"),
    Case("published_other_unit", "value: 2200, unit: tps", "value: 2200, unit: qps", "value: 2200", "published[1].unit",
         "'qps' is not the baseline's unit 'tps'"),
    Case("published_nothing", "value: 2200, unit: tps, ", "", "path: published, load: 16}", "published[1]",
         "neither a value nor a relative"),
    Case("published_without_baseline", "value: 7100, unit: tps", "relative: 0", "value: 2200", "published[1]",
         "no published throughput of the baseline"),
    Case("published_unknown_metric", "metric: throughput, value: 2200", "metric: latency_p90, value: 2200", "latency_p90",
         "published[1].metric", "unknown value 'latency_p90'", 'did you mean "latency_p9'),
    Case("scale_unknown_key", "workload.measure_s: 4", "workload.measures_s: 4", "measures_s",
         "scales.demo.set.workload.measures_s", "unknown key", 'did you mean "measure_s"?'),
    Case("scale_wrong_value", "protocol.blocks: 4", "protocol.blocks: 0", "protocol.blocks: 0",
         "scales.demo.set.protocol.blocks", "greater than 0"),
    Case("scale_duration_of_0", "workload.measure_s: 4", "workload.measure_s: 0", "workload.measure_s: 0",
         "scales.demo.set.workload.measure_s", "greater than 0"),
    Case("scale_patch_never_used", "protocol.blocks: 4", "workload.threads: 4", "workload.threads: 4",
         "scales.demo.set.workload.threads", "never used"),
    Case("scale_may_not_patch_name", "protocol.blocks: 4", "name.x: 4", "name.x", "scales.demo.set.name.x",
         "there is no 'name' to patch"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_error_names_line_key_path_and_hint(case: Case, text: str, registry: Registry) -> None:
    assert text.count(case.old) >= 1, "the case does not change the study"
    wrong = text.replace(case.old, case.new, 1)

    with pytest.raises(StudyError) as raised:
        loads(wrong, registry, file="x/study.yaml")

    line = wrong[: wrong.index(case.at)].count("\n") + 1
    position = re.match(r"x/study\.yaml:(\d+):(\d+): (?:(\S+): )?(.*)", raised.value.what)
    assert position is not None, raised.value.what
    assert int(position[1]) == line, raised.value.what
    assert 1 <= int(position[2]) <= len(wrong.splitlines()[line - 1]), raised.value.what
    assert position[3] == case.key, raised.value.what
    assert case.what in position[4], raised.value.what
    assert raised.value.exit_code == 2
    if case.hint is not None:
        assert case.hint in str(raised.value.hint), raised.value


ARMS = """\
arms:
  - {name: a, levels: {path: bare, load: 16}}
  - {name: b, levels: {path: host, load: 1}}
  - {name: c, levels: {path: bridge, load: 16}}
  - {name: d, levels: {path: published, load: 16}}
baseline: a
"""

ARM_CASES = [
    Case("name_twice", "name: b", "name: a", "levels: {path: host", "arms[1].name", "the arm 'a' is listed twice"),
    Case("levels_twice", "{path: bridge, load: 16}", "{path: bare, load: 16}", "name: c", "arms[2]",
         "the same levels as the arm 'a'"),
    Case("unknown_level", "path: host,", "path: hots,", "hots", "arms[1].levels.path", "has no level 'hots'",
         'did you mean "host"?'),
    Case("unknown_factor", "{path: host,", "{bath: host,", "bath", "arms[1].levels.bath", "there is no factor 'bath'",
         'did you mean "path"?'),
    Case("factor_left_out", "{path: host, load: 1}", "{path: host}", "name: b", "arms[1].levels", "no level of factor 'load'"),
    Case("level_unused", "  - {name: d, levels: {path: published, load: 16}}\n", "", "published: {sut",
         "factors.path.levels.published", "no arm uses the level 'published'"),
    Case("one_arm", ARMS, "arms: [{name: a, levels: {path: bare, load: 16}}]\nbaseline: a\n", "arms:", "arms",
         "fewer than two arms"),
    Case("exclude_too", "arms:\n", "exclude: [{load: 1}]\narms:\n", "exclude:", "exclude", "nothing to exclude from"),
    Case("name_not_plain", "name: b", "name: b b", "b b", "arms[1].name", "'b b' is not a plain name"),
]  # fmt: skip


@pytest.mark.parametrize("case", ARM_CASES, ids=lambda case: case.name)
def test_arms_named_by_hand_are_checked(case: Case, text: str, registry: Registry) -> None:
    by_hand = text.replace("exclude:\n  - {path: published, load: 1}\n", "")
    by_hand = by_hand.replace("baseline: {path: bare, load: 16}\n", ARMS)
    assert loads(by_hand, registry).baseline == "a"
    test_one_error_names_line_key_path_and_hint(case, by_hand, registry)


def test_an_error_in_a_scale_that_was_not_asked_for_is_found(text: str, registry: Registry) -> None:
    with pytest.raises(StudyError, match=r"scales\.demo\.set\.workload\.tablse: unknown key"):
        loads(text.replace("workload.measure_s: 4", "workload.tablse: 4"), registry, "full")


def test_an_unknown_scale_names_the_known_ones(text: str, registry: Registry) -> None:
    with pytest.raises(StudyError, match="no scale 'dmeo'") as raised:
        loads(text, registry, "dmeo")
    assert raised.value.hint == 'did you mean "demo"?'


def test_the_first_of_two_errors_in_the_file_is_named(text: str, registry: Registry) -> None:
    wrong = text.replace("blocks: 5", "blocks: 0").replace("where: text}", "where: 3}")
    with pytest.raises(StudyError, match=r"protocol\.blocks"):
        loads(wrong, registry)
