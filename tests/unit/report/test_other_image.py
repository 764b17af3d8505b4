"""The first sentence of a report whose arms run from different images."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.analyze import synthetic

from tare.record.image_facts import ImageFacts
from tare.report.content import build_report
from tare.report.terminal import render
from tare.report.words.other_image import other_images

ARMS = ("bare", "bridge")
OLD = {
    "version": "10.11.9-MariaDB-0+deb12u1", "character_set_server": "utf8mb4", "max_connections": "151",
    "port": "1",
}  # fmt: skip
NEW = {
    "version": "11.8.2-MariaDB", "character_set_server": "latin1", "max_connections": "151", "port": "2",
    "innodb_log_file_size": "9",
}  # fmt: skip


def records_of(effective: dict[str, str] | None, digest: str = "new") -> list[Any]:
    def changed(record: Any) -> Any:
        other = record.arm == "bridge"
        update = {
            "images": {"sut": ImageFacts(digest=digest if other else "old")},
            "effective": effective if other else OLD,
            "settings": {"sut": {"database": "mariadb"}},
        }
        return record.model_copy(update=update)

    return [changed(record) for record in synthetic.records(ARMS, 4)]


@pytest.mark.parametrize(
    ("effective", "sentence"),
    [
        (
            NEW,
            "Another image: MariaDB 11.8.2 against 10.11.9; 1 setting differs: character_set_server (bridge).",
        ),
        (
            {**NEW, "character_set_server": "utf8mb4"},
            "Another image: MariaDB 11.8.2 against 10.11.9; no setting differs (bridge).",
        ),
        (
            OLD | {"max_connections": "99"},
            "Another image of MariaDB 10.11.9; 1 setting differs: max_connections (bridge).",
        ),
        (None, "Another image: MariaDB against 10.11.9; its settings are unknown (bridge)."),
    ],
)
def test_another_image_is_named_with_the_settings_that_differ(
    effective: dict[str, str] | None, sentence: str
) -> None:
    (headline,) = other_images(synthetic.study(ARMS), records_of(effective))
    assert headline.text == sentence


def test_many_settings_are_counted_and_the_telling_ones_named() -> None:
    names = [f"other_{number}" for number in range(13)]
    old, new = (dict.fromkeys(names, value) | {"character_set_server": value} for value in "ab")
    records = [
        record.model_copy(update={"effective": (new if record.arm == "bridge" else old)})
        for record in records_of(NEW)
    ]
    (headline,) = other_images(synthetic.study(ARMS), records)
    assert "; 14 settings differ, among them character_set_server, other_0, other_1 (bridge)." in headline.text


def test_it_is_the_first_sentence_of_a_report() -> None:
    text = render(build_report(synthetic.study(ARMS), records_of(NEW)))
    assert text.splitlines()[2].startswith("Another image: MariaDB 11.8.2 against")
    assert "Another image" not in render(build_report(synthetic.study(ARMS), records_of(OLD, "old")))
