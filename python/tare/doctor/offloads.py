"""Runs on a host without ethtool: prints the offloads of an interface as `ethtool -k` does (linux/ethtool.h)."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
import sys
from array import array

SIOCETHTOOL = 0x8946
COMMANDS = {
    "tcp-segmentation-offload": 0x1E,  # ETHTOOL_GTSO
    "generic-segmentation-offload": 0x23,  # ETHTOOL_GGSO
    "generic-receive-offload": 0x2B,  # ETHTOOL_GGRO
}
ETHTOOL_GFLAGS, ETH_FLAG_LRO = 0x25, 1 << 15


def asked(way: socket.socket, device: str, command: int) -> int:
    """Value of an `ethtool_value` request."""
    value = array("I", [command, 0])
    request = struct.pack("16sP", device.encode(), value.buffer_info()[0])
    fcntl.ioctl(way, SIOCETHTOOL, request)
    return value[1]


def tell(name: str, *, on: bool) -> None:
    """Print a line as ethtool(8) does."""
    sys.stdout.write(f"{name}: {'on' if on else 'off'}\n")


def main(device: str) -> None:
    """Print what the driver reports; unknown features are left out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        for name, command in COMMANDS.items():
            with contextlib.suppress(OSError):
                tell(name, on=bool(asked(way, device, command)))
        with contextlib.suppress(OSError):
            tell("large-receive-offload", on=bool(asked(way, device, ETHTOOL_GFLAGS) & ETH_FLAG_LRO))


if __name__ == "__main__":
    main(sys.argv[1])
