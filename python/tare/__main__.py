"""`python -m tare`, and what the command `tare` calls."""

from tare.interruptible import ended_by_ctrl_c


def main() -> None:
    """The command line; Ctrl-C while its modules are still being loaded ends it without a traceback."""
    with ended_by_ctrl_c():
        from tare.cli import main as command_line
    command_line()


if __name__ == "__main__":
    main()
