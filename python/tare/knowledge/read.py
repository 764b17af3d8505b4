"""Claim files → claims, every fault told with its line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tare.errors import StudyError
from tare.knowledge.claim import FORMAT, Claim
from tare.study.catalogue import claims_folder
from tare.study.reading.document import Sort, read
from tare.study.reading.problems import checked
from tare.study.suggest import did_you_mean

_CLAIM = Sort(
    "a claim", "`tare knowledge show` has those to start from", "make it a readable file, or take it away"
)


@dataclass(frozen=True)
class Known:
    """A claim with its id (the file's name without `.yaml`) and the file it was read from."""

    id: str
    claim: Claim
    file: Path

    @property
    def study(self) -> str:
        """The publication, or the study of one's own, that it is of."""
        return self.claim.study


def load_claim(path: Path) -> Known:
    """Read one claim. Raises `StudyError` naming file, line, column and key path."""
    document = read(path, _CLAIM)
    given = document.tree.get("format")
    if isinstance(given, int) and given > FORMAT:
        hint = f"this tare reads format {FORMAT}: use a newer tare"
        raise document.error(("format",), f"format {given} is newer than this tare", hint=hint)
    if document.tree.get("source") is None:
        raise document.error(
            ("source",), "a claim without a source is not read", hint="say where it can be looked up"
        )
    return Known(path.stem, checked(Claim, document), path)


def load_claims(folders: Iterable[Path] | None = None) -> tuple[Known, ...]:
    """All claims below the folders, by id; without any, those that come with tare. An id may be there once only."""
    found: dict[str, Known] = {}
    for folder in (claims_folder(),) if folders is None else folders:
        for path in sorted(folder.glob("**/*.yaml")):
            known = load_claim(path)
            if known.id in found:
                raise StudyError(
                    f"{path}: the claim {known.id!r} is there already, in {found[known.id].file}", hint="rename one"
                )
            found[known.id] = known
    return tuple(found[each] for each in sorted(found))


def claim_called(claims: Iterable[Known], name: str) -> Known:
    """The claim of that id; `StudyError` with the nearest ones where there is none."""
    by_id = {known.id: known for known in claims}
    if name not in by_id:
        raise StudyError(f"there is no claim {name!r}", hint=did_you_mean(name, by_id, kind="claims"))
    return by_id[name]
