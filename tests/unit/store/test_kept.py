"""What records of a store share, and what of them is left to the end of the process."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any

from tare.record.run_record import Outcome
from tare.store.read import kept_until_exit
from tare.store.rows import Facts, canonical, from_row, to_rows


class Thing:
    """What can be looked for."""


def test_what_is_kept_for_good_is_not_freed_before_the_process_ends_and_all_else_is() -> None:
    one, other = Thing(), Thing()
    refs = [weakref.ref(one), weakref.ref(other)]
    with kept_until_exit() as kept:
        kept.append(one)
    del one, other, kept
    gc.collect()
    assert [ref() is None for ref in refs] == [False, True]
    gc.unfreeze()
    gc.collect()
    assert refs[0]() is None


def test_records_in_a_row_share_what_is_the_same_and_nothing_else(plan: Any, make: Any) -> None:
    failed = Outcome(ok=False, reason="it failed")
    records = [
        make(plan, 0, outcome=each) for each in (Outcome(ok=True), Outcome(ok=True), failed, Outcome(ok=True))
    ]
    rows = [to_rows(each, 1.0) for each in records]
    older = {key: value for key, value in json.loads(rows[3].run["record"]).items() if key != "plugins"}
    stored = [*(each.run for each in rows[:3]), {**rows[3].run, "record": canonical(older)}]
    shared = Facts({digest: body for each in rows for digest, body in each.facts.items()})
    again = [from_row(each, shared) for each in stored]
    assert again[0].outcome is again[1].outcome
    assert [each.outcome for each in again] == [each.outcome for each in records]
    assert "plugins" in again[2].model_fields_set
    assert "plugins" not in again[3].model_fields_set
