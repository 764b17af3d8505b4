"""The command line as a whole: it is there at once, and says of each subcommand what that says of itself."""

from __future__ import annotations

import re
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tare.cli import app
from tare.cli.commands import COMMANDS
from tare.cli.examples import EXAMPLES
from tare.interruptible import ended_by_ctrl_c

HEAVY = ("pandas", "statsmodels", "scipy", "polars", "docker", "numpy", "pydantic", "sqlalchemy")


def python(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "call", ["import tare.cli", "import tare.cli; tare.cli.app(['--help'], standalone_mode=False)"]
)
def test_the_command_line_and_its_help_load_nothing_that_is_slow(call: str) -> None:
    loaded = python(f"{call}\nimport sys; print(*(name for name in {HEAVY} if name in sys.modules))")
    assert (loaded.returncode, loaded.stdout.splitlines()[-1]) == (0, ""), loaded.stderr


@pytest.mark.parametrize(
    ("modules", "slow"),
    [
        ("tare.cli.results.importing", ("numpy", "scipy", "polars", "docker", "altair", "pandas", "statsmodels")),
        # What shows results is imported once there are some; a refused run and Ctrl-C do without.
        (
            "tare.cli.study.run",
            ("altair", "scipy", "tare.analyze", "tare.calibrate", "tare.report", "tare.knowledge"),
        ),
        (
            "tare.cli.study.plan, tare.cli.advice.advise",
            ("polars", "docker", "sqlalchemy", "altair", "pandas", "statsmodels", "scipy.optimize"),
        ),
        ("tare.monitors.registry", ("polars", "docker", "numpy", "scipy")),
        ("tare.cli.results.report, tare.report.terminal", ("polars", "docker", "altair", "pandas", "statsmodels")),
    ],
)
def test_what_imports_and_shows_runs_loads_only_what_it_needs(modules: str, slow: tuple[str, ...]) -> None:
    loaded = python(f"import sys, {modules}; print(*(name for name in {slow} if name in sys.modules))")
    assert (loaded.returncode, loaded.stdout) == (0, "\n"), loaded.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_a_summary_is_the_first_paragraph_of_the_command_s_own_help(name: str) -> None:
    result = COMMANDS[name].load(name).help or ""
    assert " ".join(result.split("\n\n")[0].split()) == COMMANDS[name].summary


HANDED_ON = {"load", "probe"}
"""A program of its own takes the place of the process, so that the help is that program's."""


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in HANDED_ON])
def test_in_80_columns_the_kind_of_an_option_is_one_word(name: str) -> None:
    command = COMMANDS[name].load(name)
    calls = [[name, sub] for sub in getattr(command, "commands", ())] or [[name]]
    for call in calls:
        lines = CliRunner().invoke(app, [*call, "--help"], env={"COLUMNS": "80"}).stdout.splitlines()
        kinds = [line for line in lines if re.search(r" --[a-z-]+ +<\S*( |$)", line)]
        assert kinds
        assert not [line for line in kinds if ">" not in line and " range " not in line], call


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in HANDED_ON])
def test_help_ends_with_examples_that_the_command_takes(name: str) -> None:
    command = COMMANDS[name].load(name)
    for words in [[name], *([name, sub] for sub in getattr(command, "commands", ()))]:
        lines = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"}).stdout.splitlines()
        examples = EXAMPLES[" ".join(words)]
        assert [line.strip() for line in lines if line.strip().startswith("tare ")][-len(examples) :] == list(
            examples
        )
        for example in examples:
            assert example.startswith(f"tare {' '.join(words)}")
            called = command if len(words) == 1 else command.commands[words[1]]
            called.make_context(name, example.split()[1 + len(words) :])


def test_help_lists_every_command_and_the_called_one_tells_all_of_itself() -> None:
    listed = CliRunner().invoke(app, ["--help"], terminal_width=200).stdout
    assert all(f" {name} " in listed for name in (*COMMANDS, "version"))
    assert "--max-overhead" in CliRunner().invoke(app, ["check", "--help"]).stdout
    assert "--json" in CliRunner().invoke(app, ["images", "list", "--help"]).stdout


def test_a_mistyped_command_is_told_with_what_was_meant() -> None:
    result = CliRunner().invoke(app, ["reprot"])
    assert result.exit_code == 2
    assert "Did you mean 'report'?" in result.stderr


def test_ctrl_c_while_modules_load_ends_the_process_by_the_signal_without_a_word() -> None:
    ended = python(
        "import os, signal\nfrom tare.interruptible import ended_by_ctrl_c\n"
        "with ended_by_ctrl_c():\n    os.kill(os.getpid(), signal.SIGINT)\n"
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, "", "")


def test_an_ignored_sigint_and_a_handler_of_one_s_own_stay() -> None:
    for given in (signal.SIG_IGN, lambda *_: None):
        before = signal.signal(signal.SIGINT, given)
        try:
            with ended_by_ctrl_c():
                assert signal.getsignal(signal.SIGINT) is given
            assert signal.getsignal(signal.SIGINT) is given
        finally:
            signal.signal(signal.SIGINT, before)


def test_python_s_own_handler_is_back_afterwards() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with ended_by_ctrl_c():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"probe", "load"}))
def test_help_leaves_the_folding_of_prose_to_the_terminal(name: str) -> None:
    paragraphs = (COMMANDS[name].load(name).help or "").split("\n\n")
    assert not [each for each in paragraphs if "\n" in each and not re.search(r"(?m)^[ *-]", each)]


def test_help_shows_no_type_of_the_code() -> None:
    text = CliRunner().invoke(app, ["report", "--help"]).output
    assert "<path or URL>" in text
    assert "StorePlace" not in text
