"""`python -m tare`, and what the command `tare` calls."""

import sys

_INTERRUPTED = 128 + 2
"""What a shell shows of a program that SIGINT ended."""


def main() -> None:
    """The command line; Ctrl-C while its modules are still being loaded ends it without a traceback."""
    try:
        from tare.cli import main as command_line
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    command_line()


if __name__ == "__main__":
    main()
