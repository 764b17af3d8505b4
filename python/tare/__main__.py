"""Entry point of `python -m tare` and of the command `tare`."""

from tare.interruptible import ended_by_ctrl_c


def main() -> None:
    """Run the command line. Ctrl-C while its modules are still loading ends it without a traceback."""
    with ended_by_ctrl_c():
        from tare.cli import main as command_line
    command_line()


if __name__ == "__main__":
    main()
