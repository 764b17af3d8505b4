"""The explorer: answers of stores first, any arm against any other, two stores side by side, claims in one plot."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jinja2 import Environment
from markupsafe import Markup
from scipy.special import stdtrit

from tare.knowledge.advice_text import context_words, effect_words
from tare.knowledge.claim import ClaimFile
from tare.knowledge.site.forest import mark_of
from tare.knowledge.site.stores import StoreView
from tare.one_line import plain
from tare.report.figures import signed
from tare.traps.trap import TrapFile
from tare.version import __version__

_MOST_FREEDOM = 200


def explorer_pages(
    templates: Environment, stores: Sequence[StoreView], claims: Sequence[ClaimFile], traps: Sequence[TrapFile]
) -> Iterator[tuple[str, str]]:
    """Yield the pages of answers and traps: file name → text."""
    shared = {"version": __version__}
    data = {
        "stores": [each.tree for each in stores],
        "claims": [drawn for known in claims if (drawn := _claim(known)) is not None],
        "search": list(_search(stores, claims, traps)),
        "t": [round(float(stdtrit(freedom, 0.975)), 4) for freedom in range(1, _MOST_FREEDOM + 1)],
    }
    yield (
        "index.html",
        templates.get_template("index.html.j2").render(
            stores=stores, claims=len(claims), traps=len(traps), data=_embedded(data), **shared
        ),
    )
    yield "traps.html", templates.get_template("traps.html.j2").render(traps=traps, **shared)


def _claim(known: ClaimFile) -> Mapping[str, Any] | None:
    mark, context = mark_of(known.claim), known.claim.context
    if mark is None or context is None:
        return None
    return {
        "id": known.id,
        "metric": known.claim.effect.metric,
        "point": mark.point,
        "low": mark.low,
        "high": mark.high,
        "database": context.database.name,
        "words": signed(plain(effect_words(known.claim), 120)),
        "arm": plain(f"{context.arm.deployment}, {context.arm.network or 'path not told'}", 80),
        "baseline": context.baseline.deployment,
        "weak": known.claim.source.weak,
    }


def _search(
    stores: Sequence[StoreView], claims: Sequence[ClaimFile], traps: Sequence[TrapFile]
) -> Iterator[tuple[str, str, str]]:
    """Yield kind and title, what is searched beside the title, and the address."""
    for store in stores:
        yield f"study {store.name}", f"{store.trust} {' '.join(store.machine.values())}", f"#{store.id}"
        for arm, words in store.answers.items():
            yield f"{store.name}: {arm}", words, f"#{store.id}"
    for known in claims:
        words = f"{known.claim.says} {context_words(known.claim)}"
        yield f"claim {known.id}", plain(words, 600), f"claims/{known.id}.html"
    for trap in traps:
        yield f"trap {trap.trap.title}", plain(trap.trap.says, 600), f"traps.html#{trap.id}"


def _embedded(data: object) -> Markup:
    """Return JSON that no script element can end early in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return Markup(text)  # noqa: S704 - without `<`, it is text to an HTML parser
