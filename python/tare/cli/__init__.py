"""The `tare` command: one file for each subcommand. Data goes to stdout, progress and messages to stderr.

Exit codes: 0 success, 1 a run failed, 2 bad input, 3 the environment cannot do it; docs/reference/exit-codes.md.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from tare.cli.commands import ALONE, LazyGroup
from tare.errors import NO_THREAD, EnvironmentLacks, StoreError, TareError, is_thread_refused
from tare.one_line import harmless
from tare.version import __version__

_INTERRUPTED = 128 + 2
"""Exit code that shells show for a program ended by SIGINT."""
_CLOSED_PIPE = 128 + 13
"""Exit code that shells show for a program ended by SIGPIPE."""

app = typer.Typer(
    name="tare",
    cls=LazyGroup,
    help="What does it cost a database, and its benchmark, to run in a container or a virtual machine?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.command(rich_help_panel=ALONE)
def version() -> None:
    """Print tare's version."""
    typer.echo(__version__)


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer's callback
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[  # noqa: FBT002 - an option, given by name
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print tare's version.")
    ] = False,
) -> None:
    """Weigh the container: the same database from the same bits, bare, in a container, in a machine."""


def _engine_failures() -> tuple[type[Exception], ...]:
    """Exceptions that the engine's client raises; none if the client was never imported."""
    if "docker" not in sys.modules:
        return ()
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    return DockerException, RequestException


def main() -> None:
    """Run the command line; a `TareError` becomes one line on stderr and its exit code."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except TareError as error:
        sys.stderr.write(harmless(f"tare: {error}\n"))
        sys.exit(error.exit_code)
    except _engine_failures() as error:  # an engine may stop answering at any point
        sys.stderr.write(harmless(f"tare: the container engine failed or did not answer in time: {error}\n"))
        sys.exit(EnvironmentLacks.exit_code)
    except BrokenPipeError:  # the reader of standard output has closed it, as `tare plan … | head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_CLOSED_PIPE)
    except OSError as error:  # a full disk, or a file that cannot be written, such as standard output
        sys.stderr.write(harmless(f"tare: {error}\n"))
        sys.exit(EnvironmentLacks.exit_code)
    except RecursionError:
        sys.stderr.write("tare: a file is nested too deeply to be read\n")
        sys.exit(StoreError.exit_code)
    except BaseException as error:
        if not is_thread_refused(error):
            raise
        sys.stderr.write(f"tare: {NO_THREAD}; finished work is kept, and the same command resumes\n")
        sys.exit(EnvironmentLacks.exit_code)
