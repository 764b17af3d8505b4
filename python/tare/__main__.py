"""Entry point of `python -m tare` and of the command `tare`."""

import os

from tare.interruptible import ended_by_ctrl_c


def main() -> None:
    """Run the command line. Ctrl-C while its modules are still loading ends it without a traceback.

    Where OpenBLAS, which numpy loads, can start no thread, it sends its own process SIGINT (blas_thread_init in its
    driver/others/blas_server.c), so that tare would end as by Ctrl-C. tare has no use for its threads.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with ended_by_ctrl_c():
        from tare.cli import main as command_line
    command_line()


if __name__ == "__main__":
    main()
