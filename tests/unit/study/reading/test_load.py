"""A study file becomes arms that are whole, in order, under names that are theirs alone."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tare.errors import StudyError
from tare.study.reading.load import load, loads
from tare.study.registry import Registry
from tare.study.values import NetworkKind


def test_arms_are_the_product_without_the_excluded_in_order(text: str, registry: Registry) -> None:
    study = loads(text, registry)
    assert [arm.name for arm in study.arms] == [
        "bare-load-1", "bare-load-16", "host-load-1", "host-load-16", "bridge-load-1", "bridge-load-16",
        "published-load-16",
    ]  # fmt: skip
    assert study.factors == {"path": ("bare", "host", "bridge", "published"), "load": ("1", "16")}
    assert study.baseline == "bare-load-16"


def test_an_arm_has_the_template_with_its_levels_applied(text: str, registry: Registry) -> None:
    arms = {arm.name: arm.settings for arm in loads(text, registry).arms}
    assert arms["bridge-load-1"].sut.network is NetworkKind.BRIDGE
    assert arms["bridge-load-1"].workload["threads"] == 1
    assert arms["bare-load-16"].sut.deployment == "bare"
    assert arms["host-load-16"].sut.limits.memory == "512M"
    assert all(arm.workload["tables"] == 8 for arm in arms.values())


def test_a_workload_s_defaults_are_part_of_its_parameters(text: str, registry: Registry) -> None:
    workload = loads(text, registry).arms[0].settings.workload
    assert workload["warmup_s"] == 0.0
    assert workload["script"] == "read_only"
    assert workload["rate"] is None
    assert "name" not in workload


def test_a_scale_sets_keys_and_adds_its_deviations(text: str, registry: Registry) -> None:
    full, demo = loads(text, registry), loads(text, registry, "demo")
    assert (full.scale, full.protocol.blocks, full.arms[0].settings.workload["measure_s"]) == ("full", 5, 1800.0)
    assert (demo.scale, demo.protocol.blocks, demo.arms[0].settings.workload["measure_s"]) == ("demo", 4, 4.0)
    assert full.deviations == ("It is another machine.",)
    assert demo.deviations == ("It is another machine.", "It is small.")


def test_full_is_there_without_being_written(text: str, registry: Registry) -> None:
    study = loads(text.replace("  full: {}\n", ""), registry)
    assert study.scale == "full"


def test_a_level_may_set_what_the_template_leaves_open(text: str, registry: Registry) -> None:
    open_template = text.replace("  deployment: container\n", "", 1).replace(
        "{sut.network: bridge}", "{sut.network: bridge, sut.deployment: container}"
    ).replace("host: {}", "host: {sut.deployment: container}").replace(
        "{sut.network: published-loopback}", "{sut.network: published-loopback, sut.deployment: container}"
    )  # fmt: skip
    assert loads(open_template, registry).arms[2].settings.sut.deployment == "container"


def test_a_setting_s_name_may_hold_dots(text: str, registry: Registry) -> None:
    patched = text.replace("host: {}", "host: {sut.settings.storage.cache.size: 1}")
    settings = loads(patched, registry).arms[2].settings.sut.settings
    assert settings == {"innodb_flush_method": "O_DIRECT", "storage.cache.size": 1}


def test_published_figures_are_related_to_the_baseline_s(text: str, registry: Registry) -> None:
    bare, published = loads(text, registry).published
    assert bare.relative == 0.0
    assert published.relative == pytest.approx(2200 / 7100 - 1)
    assert published.levels == {"path": "published", "load": "16"}


def test_a_relative_figure_that_is_given_is_kept(text: str, registry: Registry) -> None:
    study = loads(text.replace("value: 2200, unit: tps", "relative: -0.7"), registry)
    assert study.published[1].relative == -0.7
    assert study.published[1].value is None


def test_named_values_make_readable_arms(text: str, registry: Registry) -> None:
    named = text.replace("levels: [1, 16]", "levels: {few: 1, many: 16}").replace("load: 16}", "load: many}")
    study = loads(named.replace("load: 1}", "load: few}"), registry)
    assert study.baseline == "bare-many"
    assert study.arms[1].settings.workload["threads"] == 16


def test_paths_of_images_are_relative_to_the_study(text: str, registry: Registry, tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(text.replace("  image: mariadb\n  database", "  image: oci:layout\n  database"))
    assert load(file, registry).arms[0].settings.sut.image == f"oci:{tmp_path}/layout"


def test_an_a_a_study_is_a_study(text: str, registry: Registry) -> None:
    twice = text[: text.index("factors:")] + "factors: {half: {levels: {a: {}, b: {}}}}\nbaseline: a\n"
    study = loads(twice, registry)
    assert [arm.name for arm in study.arms] == ["a", "b"]
    assert study.arms[0].settings == study.arms[1].settings


def test_the_file_s_text_is_kept(text: str, registry: Registry) -> None:
    assert loads(text, registry).text == text


LEVEL = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", fullmatch=True)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(LEVEL, min_size=1, max_size=4, unique=True), min_size=1, max_size=3))
def test_arm_names_are_plain_and_unique_whatever_the_levels(levels: list[list[str]]) -> None:
    from tare.workloads import Parameters

    registry = Registry(
        {"d": lambda _: None}, {"w": Parameters}, {"bare": False}, frozenset({"interleave"}), frozenset({"i"})
    )
    tree = {
        "format": 1, "name": "n", "question": "q", "client": {"image": "i", "deployment": "bare"},
        "sut": {"image": "i", "deployment": "bare", "database": "d"}, "workload": {"name": "w", "measure_s": 1},
        "factors": {f"f{n}": {"levels": {level: {} for level in names}} for n, names in enumerate(levels)},
        "baseline": {f"f{n}": names[0] for n, names in enumerate(levels)},
    }  # fmt: skip
    if sum(len(names) > 1 for names in levels) == 0:
        with pytest.raises(StudyError, match="fewer than two arms"):
            loads(json.dumps(tree), registry)
        return
    names = [arm.name for arm in loads(json.dumps(tree), registry).arms]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", name) for name in names)
