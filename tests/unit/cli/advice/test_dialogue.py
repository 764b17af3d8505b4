"""The dialogue of `tare advise`, in a real terminal: good answers, empty ones, nonsense, keys that end it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tests.unit.cli.terminal import CTRL_C, CTRL_D, Terminal, tare_in_terminal
from typer.testing import CliRunner

from tare.cli import app
from tare.cli.advice.dialogue import SERVED
from tare.errors import StudyError
from tare.plan.expand import expand
from tare.study.reading.load import load
from tare.study.registry import installed

Opened = Callable[..., AbstractContextManager[Terminal]]
START = ("systems", "mariadb", "unknown", "0", "same")


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Opened:
    """A terminal in a directory of its own, where `tare advise` asks."""
    (tmp_path / "here").mkdir()
    monkeypatch.delenv("COLUMNS", raising=False)

    @contextmanager
    def open_terminal(*words: str, columns: int = 80) -> Iterator[Terminal]:
        environ = {"TARE_HOME": str(tmp_path / "home")}
        with tare_in_terminal(
            "advise", *words, cwd=tmp_path / "here", environ=environ, columns=columns
        ) as terminal:
            yield terminal

    return open_terminal


def asked(*answers: str, words: tuple[str, ...] = ()) -> tuple[int, str, BaseException | None]:
    """By a pipe, which is quicker: exit code, both outputs, what was raised."""
    shown = CliRunner().invoke(app, ["advise", *words], input="".join(f"{each}\n" for each in answers))
    return shown.exit_code, shown.output, shown.exception


def test_enter_alone_takes_what_is_offered_and_leaves_a_study_that_can_be_planned(
    opened: Opened, tmp_path: Path
) -> None:
    with opened() as terminal:
        terminal.answer(*[""] * 11)
        assert terminal.ended() == 0
    assert "For systems: only if" in terminal.said
    assert "The smallest study that would answer this: my-benchmark.yaml" in terminal.said
    study = load(tmp_path / "here" / "my-benchmark.yaml", installed())
    assert [arm.name for arm in study.arms if not arm.control] == ["bare", "container-host-1"]
    assert len(expand(study).runs) == 3 * study.protocol.blocks


def test_nonsense_is_told_and_asked_for_again(opened: Opened) -> None:
    with opened() as terminal:
        terminal.answer("everything", "sytems", "systems", "my db; rm -rf", "mariadb", "Container")
        terminal.answer("a lot", "-3", "nan", "40 %", "same")
        terminal.answer("bare-metal", "container", "bridge", "bind", "bare", "maybe", "n")
        terminal.until("Save")
        terminal.answer("/nowhere/mine.yaml", "-")
        assert terminal.ended() == 0
    assert "'everything' is not an answer: one of" in terminal.said
    assert 'did you mean "systems"?' in terminal.said
    assert "is not the name of a database" in terminal.said
    assert terminal.said.count("is not a difference in percent") == 3
    assert "there is no folder '/nowhere'" in terminal.said
    assert "they are expected to differ by 40 %" in " ".join(terminal.said.split())
    assert "Traceback" not in terminal.said


@pytest.mark.parametrize(("key", "code"), [(CTRL_C, 130), (CTRL_D, 2)])
def test_ctrl_c_and_ctrl_d_end_it_on_a_line_of_their_own(
    key: str, code: int, opened: Opened, tmp_path: Path
) -> None:
    with opened() as terminal:
        terminal.answer("systems")
        terminal.until("Database")
        terminal.until(": ")
        time.sleep(1)  # a signal between the question and the wait for its answer is only seen at the next key
        terminal.press(key)
        assert terminal.ended() == code
    assert terminal.said.endswith("\n")
    assert "Traceback" not in terminal.said
    assert ("the input ended before the last question" in terminal.said) is (key == CTRL_D)
    assert list((tmp_path / "here").iterdir()) == []


def test_a_narrow_terminal_breaks_lines_between_words(opened: Opened) -> None:
    with opened(columns=46) as terminal:
        terminal.answer(*[""] * 10, "-")
        assert terminal.ended() == 0
    lines = terminal.said[terminal.said.index("Is it safe") :].splitlines()
    assert max(len(line) for line in lines if " " in line.strip()) <= 46
    assert len(lines) > 30


def test_a_file_that_is_there_is_not_overwritten_and_another_is_asked_for(opened: Opened, tmp_path: Path) -> None:
    (tmp_path / "here" / "my-benchmark.yaml").write_text("mine")
    with opened() as terminal:
        terminal.answer(*[""] * 11)
        terminal.until("exists already")
        terminal.answer("other.yaml")
        assert terminal.ended() == 0
    assert (tmp_path / "here" / "my-benchmark.yaml").read_text() == "mine"
    assert load(tmp_path / "here" / "other.yaml", installed())


@pytest.mark.parametrize("database", SERVED)
def test_of_every_database_that_tare_has_it_ends_in_a_study(database: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    start = (*START[:1], database, *START[2:])
    container = ("container", "published-address", "volume", "container", "bridge")
    code, output, raised = asked(
        *start,
        *container,
        "y",
        "vm",
        "tap",
        "bare",
        "y",
        "bare",
        "container",
        "y",
        "vm-container",
        "user",
        "layer",
        "bare",
        "n",
        words=("--write", str(file)),
    )
    assert code == 0, (output, raised)
    study = load(file, installed())
    arms = {arm.name: arm.settings for arm in study.arms if not arm.control}
    assert list(arms) == [
        "bare",
        "container-published-address-client-1",
        "vm-tap-2",
        "bare-client-3",
        "vm-container-user-4",
    ]
    _, first, machine, client, inside = arms.values()
    assert {each.sut.database for each in arms.values()} == {database}
    assert first.client is not None
    assert (first.sut.network, first.sut.storage.kind, first.client.network) == (
        "published-address",
        "volume",
        "bridge",
    )
    assert (machine.sut.deployment, machine.sut.network) == ("vm", "tap")
    assert (inside.sut.network, inside.sut.storage.kind) == ("user", "layer")
    assert client.client is not None
    assert (client.sut.deployment, client.client.deployment) == ("bare", "container")
    expand(study)


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (
            ("absolute", "oracle", "bare", "0", "same", "container", "host", "bind", "bare", "n"),
            "no image of 'oracle'",
        ),
        ((*START, "vm-container", "tap", "nfs", "bare", "n"), "data on nfs needs one of bare, container"),
        ((*START, "vm-container", "user", "volume", "bare", "n"), "data on volume needs one of container"),
        ((*START[:4], "other", "container", "host", "bind", "bare", "n"), "on the database's host"),
    ],
)
def test_why_there_is_no_study_is_told(answers: tuple[str, ...], why: str) -> None:
    code, output, raised = asked(*answers)
    assert code == 0, raised
    assert "The smallest study that would answer this: none, as" in output
    assert why in " ".join(output.split())


def test_answers_that_end_too_early_and_options_beside_the_dialogue_are_refused() -> None:
    for raised in (asked(*START)[2], asked(words=("--comparing", "systems"))[2]):
        assert isinstance(raised, StudyError)


@pytest.mark.parametrize(
    ("answers", "arm", "expected"),
    [
        (("pod", "pod"), "pod-pod-1", ("pod", None, "pod")),
        (("pod", "cluster-ip"), "pod-cluster-ip-1", ("pod", None, "cluster-ip")),
        (("podman", "bridge", "bind", "bare"), "podman-bridge-1", ("container", "podman", "bridge")),
    ],
)
def test_pods_and_podman_are_asked_for_and_have_a_study(
    answers: tuple[str, ...], arm: str, expected: tuple[str, str | None, str], tmp_path: Path
) -> None:
    target = tmp_path / "mine.yaml"
    code, output, _ = asked("systems", "postgresql", "pod", "0", "same", *answers, "n", str(target))
    assert code == 0, output
    assert f"{arm}, throughput: " in " ".join(output.split())
    study = load(target, installed())
    sut = next(each.settings.sut for each in study.arms if each.name == arm)
    assert (sut.deployment, sut.engine, sut.network) == expected
