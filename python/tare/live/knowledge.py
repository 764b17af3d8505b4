"""The knowledge base as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.knowledge.claim import Qualitative
from tare.knowledge.read import load_claims
from tare.knowledge.words import context_words, effect_words
from tare.sites.layout import default_layout
from tare.study.catalogue import claims_folder


def rows() -> Sequence[Mapping[str, str]]:
    """All claims, those that come with tare and one's own. Raises `StudyError` for a file that cannot be read.

    `says` is empty where the claim's sentence is its effect.
    """
    own = default_layout().knowledge
    folders = (claims_folder(), own) if own.is_dir() else (claims_folder(),)
    return [
        {
            "id": known.id,
            "study": known.study,
            "context": context_words(known.claim),
            "effect": effect_words(known.claim),
            "says": "" if isinstance(known.claim.effect, Qualitative) else known.claim.says,
            "source": f"{known.claim.source.authors}: {known.claim.source.title}, {known.claim.source.year}",
        }
        for known in load_claims(folders)
    ]
