"""Every kind of host by name."""

from __future__ import annotations

from collections.abc import Mapping

from tare.sites import Host
from tare.sites.fake import FakeHost
from tare.sites.local import LocalHost

HOSTS: Mapping[str, type[Host]] = {"local": LocalHost, "fake": FakeHost}
