from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.unit.images.conftest import Prepared, left_on

from tare.errors import EnvironmentLacks, StoreError, StudyError
from tare.images.digest import list_tree
from tare.images.image_store import ImageStore, StoredImage
from tare.images.maintenance import remove, verify
from tare.sites.layout import make_home


@pytest.fixture
def two(prepared: Prepared, image_store: ImageStore) -> tuple[StoredImage, ...]:
    prepared("fake:a")
    prepared("fake:b")
    return image_store.all()


def test_what_is_stored_is_what_comes_back(prepared: Prepared, image_store: ImageStore) -> None:
    image = prepared("fake:a")
    (stored,) = image_store.all()
    assert stored.image == image
    assert stored.size_bytes == 1
    assert image_store.listing(image.digest) == tuple(list_tree(Path(image.rootfs)))


def test_a_beginning_of_four_digits_means_the_image(image_store: ImageStore, two: tuple[StoredImage, ...]) -> None:
    for each in two:
        digest = each.image.digest
        for given in (digest, digest[:4], digest[:12], f"sha256:{digest[:8]}", each.image.reference):
            assert image_store.resolve(given) == (each,)


@pytest.mark.parametrize("given", ["", "abc", "nothing", "fake:c", "zzzzzzz", "../keys"])
def test_what_means_no_image_is_an_error(image_store: ImageStore, two: tuple[StoredImage, ...], given: str) -> None:
    with pytest.raises(StudyError, match="no image"):
        image_store.resolve(given)


def test_a_beginning_of_several_is_ambiguous(
    image_store: ImageStore, two: tuple[StoredImage, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tare.images.image_store._LEAST_DIGITS", 0)
    with pytest.raises(StudyError, match=r"ambiguous: \w+, \w+ \(give more digits"):
        image_store.resolve("sha256:")


def test_a_removed_image_leaves_nothing(image_store: ImageStore, two: tuple[StoredImage, ...]) -> None:
    for each in two:
        remove(each, image_store, None)
    assert image_store.all() == ()
    assert sorted(path.name for path in image_store.layout.images.rglob("*")) == ["keys", "lock"]
    assert image_store.ledger.entries() == ()


def test_removing_one_leaves_the_other(
    image_store: ImageStore, two: tuple[StoredImage, ...], prepared: Prepared
) -> None:
    remove(two[0], image_store, None)
    assert image_store.all() == two[1:]
    assert prepared("fake:b") == two[1].image
    assert prepared("fake:a").digest == two[0].image.digest


def test_an_image_in_use_is_not_removed(prepared: Prepared, image_store: ImageStore) -> None:
    image = prepared("fake:a", hold=True)
    with pytest.raises(EnvironmentLacks, match="a running tare is using the image"):
        remove(image_store.all()[0], image_store, None)
    assert Path(image.rootfs, "text").read_text() == "a"
    assert left_on(image_store) == []


def test_an_image_that_the_engine_has_is_not_removed_without_it(
    prepared: Prepared, image_store: ImageStore
) -> None:
    prepared("fake:a")
    (stored,) = image_store.all()
    home = image_store.layout.images / stored.image.digest
    document = json.loads((home / "image.json").read_text())
    document["image"]["engine_id"] = "sha256:1"
    (home / "image.json").write_text(json.dumps(document))
    with pytest.raises(EnvironmentLacks, match="no engine answers"):
        remove(image_store.all()[0], image_store, None)
    assert len(image_store.all()) == 1


def test_a_good_image_is_verified_and_says_that_no_engine_was_asked(
    two: tuple[StoredImage, ...], image_store: ImageStore
) -> None:
    damage = verify(two[0], image_store, None)
    assert damage.good
    assert not damage.engine_checked


def test_a_changed_tree_is_told_by_its_first_difference(
    two: tuple[StoredImage, ...], image_store: ImageStore
) -> None:
    (Path(two[0].image.rootfs) / "text").write_text("changed")
    assert verify(two[0], image_store, None).tree == 'has "/text" with other content'
    assert verify(two[1], image_store, None).good


@pytest.mark.parametrize("damage", ["", "no json\n", '["a"]\n'])
def test_a_damaged_listing_is_told_as_such_and_hides_no_other_image(
    two: tuple[StoredImage, ...], image_store: ImageStore, damage: str
) -> None:
    (image_store.layout.images / two[0].image.digest / "tree.jsonl").write_text(damage)
    results = [verify(each, image_store, None) for each in two]
    assert [each.good for each in results] == [False, True]
    assert str(results[0].tree).startswith("cannot be compared: ")


@pytest.mark.parametrize("key", ["", "../x", "a/b", "a b"])
def test_a_key_that_would_be_another_path_is_refused(image_store: ImageStore, key: str) -> None:
    with pytest.raises(StoreError, match="is not a digest"):
        image_store.find(key)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's trees have set-uid programs")
def test_root_closes_its_trees_to_others_in_an_older_home_too(prepared: Prepared, image_store: ImageStore) -> None:
    """A tree holds set-uid programs of whoever made the image; anybody on the host could run them by their path."""
    make_home(image_store.layout.home)
    image_store.layout.images.mkdir(exist_ok=True)
    image_store.layout.images.chmod(0o755)
    prepared("fake:a")
    assert image_store.layout.images.stat().st_mode & 0o777 == 0o700
