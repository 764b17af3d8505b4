"""A machine that allows no further process or thread ends a command in one line, whoever asked for it."""

from __future__ import annotations

import pytest

from tare import cli
from tare.errors import EnvironmentLacks, is_thread_refused


class PanicException(BaseException):
    """As libraries in Rust raise it."""


REFUSED = (
    'called `Result::unwrap()` on an `Err` value: Os { code: 11, message: "Resource temporarily unavailable" }'
)


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), PanicException(REFUSED)])
def test_a_refused_thread_is_the_environment_s_fault(
    error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Found by `make chaos`: both were tracebacks."""

    def app() -> None:
        raise error

    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == EnvironmentLacks.exit_code
    assert capsys.readouterr().err.startswith("tare: no further thread can be started")


@pytest.mark.parametrize(
    "error", [RuntimeError("something else"), PanicException("index out of bounds"), SystemExit(3)]
)
def test_whatever_else_happens_stays_what_it_is(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def app() -> None:
        raise error

    assert not is_thread_refused(error)
    monkeypatch.setattr(cli, "app", app)
    with pytest.raises(type(error)):
        cli.main()
