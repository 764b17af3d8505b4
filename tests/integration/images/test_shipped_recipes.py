"""Recipes that come with tare, built by the host's own apt, Maven and mmdebstrap, without an engine.

They stay in the tests' cache. Tests on the engine take them from there, and wait for one that is being built.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tare.images.image_store import ImageStore
from tare.images.maintenance import verify
from tare.images.prepare import prepare
from tare.images.recipe.file import find_recipe, read_recipe
from tare.sites import Completed
from tare.sites.layout import default_layout
from tare.sites.local import LocalHost
from tare.sites.sqlite_ledger import SqliteLedger

BUILD_S = 900.0
CACHED_S = 1.0
"""CPU time of a second call, which finds what the first one made; it may wait for another worker's lock."""
USED = {
    "mariadb": "usr/sbin/mariadbd",
    "sysbench": "usr/share/sysbench/oltp_read_only.lua",
    "tare-load": "usr/local/bin/tare-load",
}
"""Those that tests on the engine use, in the order in which they do, each with what it is made for."""
USED_BY_SLOW_TESTS = {"ycsb": "opt/ycsb/lib", "redis-7": "usr/bin/redis-server", "fio": "usr/bin/fio"}
RECIPES = [*USED.items(), *(pytest.param(*each, marks=pytest.mark.slow) for each in USED_BY_SLOW_TESTS.items())]


class Idle(LocalHost):
    """Runs nothing: what is cached needs no program."""

    def run(self, *args: object, **kwargs: object) -> Completed:
        raise AssertionError(f"{args[0]!r} was run")


@pytest.mark.root
@pytest.mark.timeout(BUILD_S)
@pytest.mark.parametrize(("name", "made_for"), RECIPES)
def test_a_recipe_gives_a_whole_tree_with_its_packages_and_is_found_again(name: str, made_for: str) -> None:
    layout = default_layout()
    cache = ImageStore(layout, SqliteLedger(layout.ledger))
    image = prepare(name, host=LocalHost(), layout=layout, ledger=cache.ledger, engine=None, hold=False)
    assert set(read_recipe(find_recipe(name)).packages) <= dict(image.packages).keys()
    assert (Path(image.rootfs) / made_for).exists()
    verified = verify(cache.resolve(image.digest)[0], cache, None)
    assert (verified.tree, verified.good) == (None, True)
    began_s = time.process_time()
    again = prepare(name, host=Idle(), layout=layout, ledger=cache.ledger, engine=None, hold=False)
    assert (again.digest, again.rootfs) == (image.digest, image.rootfs)
    assert time.process_time() - began_s < CACHED_S
