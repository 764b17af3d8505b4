"""The page of machines that tare was tried on: what a new trial replaces, and how a row reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tools.machines.__main__ import HERE, TRIALS, repeated, results, title
from tools.machines.matrix import HEAD, Seen, engine_of, merged, page, parse, text

VERSIONS = {"docker": "26.1.5", "podman": "5.4.2", "crun": "1.21", "containerd": "1.7.24"}
ONE = Seen(
    "Debian 13",
    "7.2.13 (UML)",
    "257",
    "v2, systemd",
    "3.13.5",
    "root",
    "study, arm bare",
    "none",
    "works",
    "2026-11-29",
)


@pytest.mark.parametrize(
    ("arm", "engine"),
    [
        ("bare", "none"),
        ("containerd", "containerd 1.7.24"),
        ("docker-published", "Docker 26.1.5"),
        ("host", "Docker 26.1.5"),
        ("rootless", "Podman 5.4.2, crun 1.21"),
    ],
)
def test_an_arm_names_the_engine_that_made_its_container(arm: str, engine: str) -> None:
    assert engine_of(arm, VERSIONS) == engine


def test_a_new_trial_replaces_the_same_of_before_and_no_other() -> None:
    other = replace(ONE, account="docker")
    failed = replace(ONE, result="it | never became ready", date="2026-12-01")
    assert merged([ONE, other], [failed]) == [other, failed]
    assert parse(text([failed, other])) == [failed, other]


def test_a_failed_trial_stays_on_the_page_with_its_reason() -> None:
    assert page([replace(ONE, result="it | never became ready")]) == HEAD + (
        "| Debian 13 | 7.2.13 (UML) | 257 | v2, systemd | 3.13.5 | root | study, arm bare | none "
        "| it \\| never became ready | 2026-11-29 |\n"
    )


def test_trials_of_one_machine_have_rows_of_their_own() -> None:
    """Two with one name would replace each other on the page."""
    assert title("setting userns-remap") == "dockerd userns-remap"
    named = [(account, title(words)) for account, words in TRIALS]
    assert len(named) == len(set(named))


def test_every_trial_is_one_of_the_script_s_and_has_its_study() -> None:
    script = (HERE / "trial.sh").read_text()
    for verb, _, what in (words.partition(" ") for _, words in TRIALS):
        assert f"    {verb})" in script
        assert not what or (HERE / what).exists() or f"            {what})" in script


def test_a_resumed_study_of_all_engines_is_told_from_one_of_all_networks() -> None:
    assert (title("resume root.yaml"), title("resume user.yaml")) == ("resume engines", "resume")


def test_the_control_of_a_study_ran_on_the_engine_of_its_baseline() -> None:
    assert repeated("baseline-again", "study root.yaml") == "bare"
    assert repeated("baseline-again", "resume user.yaml") == "host"
    assert repeated("bridge", "resume user.yaml") == "bridge"


@pytest.mark.parametrize("code", [0, 1])
def test_each_arm_has_its_end_even_if_docker_did_not_restart_afterwards(code: int) -> None:
    seen = results("setting image-store", code, '{"bare": "works", "layer": "no snapshot"}')
    assert seen == {"dockerd image-store, arm bare": "works", "dockerd image-store, arm layer": "no snapshot"}


def test_a_trial_without_arms_works_or_has_its_last_line() -> None:
    assert results("clean", 0, "nothing is left") == {"clean": "works"}
    assert results("clean", 1, "left: tare.slice") == {"clean": "left: tare.slice"}
    assert results("doctor", 0, "A study can run here.") == {"doctor": "A study can run here."}
