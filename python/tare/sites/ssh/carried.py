"""tare's own programs on a host over SSH: copied there when they are first run, by digest, and kept."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tare.errors import RunFailed
from tare.sites.binaries import GUEST, LOAD, PROBE, candidates
from tare.sites.ledger import Kind
from tare.sites.ssh.ledger import AgentLedger
from tare.sites.ssh.link import Link, Refused

_CARRIED = {binary.name: binary for binary in (PROBE, GUEST, LOAD)}
_QUICK_S = 30.0
_PART = 4 << 20


class Carried:
    """Recognises tare's own programs by their local paths, and copies them to the host."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._there: dict[str, str] = {}

    def path_there(self, program: str) -> str:
        """Path of a program on the host; for programs that are not tare's, the given path."""
        binary = _CARRIED.get(Path(program).name)
        if binary is None or program not in candidates(binary) or not Path(program).is_file():
            return program
        if program not in self._there:
            self._there[program] = self._brought(Path(program))
        return self._there[program]

    def _brought(self, program: Path) -> str:
        content = program.read_bytes()
        folder = f"{self._link.agent.home}/programs"
        place = f"{folder}/{program.name}-{hashlib.sha256(content).hexdigest()[:16]}/{program.name}"
        try:
            self._link.ask("read", path=place, offset=0, limit=1)
        except Refused as refused:
            if refused.kind != "absent":
                raise RunFailed(f"{place} cannot be read on {self._link.name}: {refused.what}") from refused
            self._bring(content, folder, place)
        return place

    def _bring(self, content: bytes, folder: str, place: str) -> None:
        AgentLedger(self._link).note(Kind.PATH, folder, host=self._link.name, keep=True)
        try:
            argv = ["mkdir", "-p", "-m", "0755", "--", str(Path(place).parent)]
            self._link.ask("run", timeout_s=_QUICK_S, argv=argv, env=None, limit_s=_QUICK_S)
            scratch = f"{place}.part"
            for start in range(0, len(content), _PART):
                self._link.ask("put_part", content[start : start + _PART], scratch=scratch, offset=start)
            self._link.ask("put_whole", scratch=scratch, path=place, mode=0o755, size=len(content))
        except Refused as refused:
            raise RunFailed(f"{place} cannot be written on {self._link.name}: {refused.what}") from refused
