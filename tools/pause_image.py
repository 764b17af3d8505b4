"""`python -m tools.pause_image`: the image of a pod's sandbox, as an archive on standard output.

A node whose containerd can reach no registry needs one before its first pod.
"""

from __future__ import annotations

import os
import sys

from tare.deployments.kube.archive import archive
from tare.deployments.pod.pause import PATH, pause_image

NAME = "tare.invalid/pause:1"


def main() -> None:
    """Write it."""
    machine = os.uname().machine
    sys.stdout.buffer.write(archive(NAME, pause_image(machine), machine, PATH))


if __name__ == "__main__":
    main()
