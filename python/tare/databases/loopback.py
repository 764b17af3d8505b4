"""Addresses of the loopback network, all of which every Linux host has (127.0.0.0/8)."""

from __future__ import annotations


def node_address(port: int, number: int = 1) -> str:
    """One that no other node of the machine has, made from its port and, in a cluster, from its number (from 1).

    So nothing but that port has to be free. The last octet is odd below port 32768 and even above.
    """
    return f"127.{64 + (port >> 8) % 128}.{port & 255}.{2 * number - 1 + (port >> 15)}"
