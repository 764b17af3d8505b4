"""Removing a directory: what a user's own namespace left to its other users goes as from within one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tare.deployments.directories import USER_NAMESPACE, remove_tree
from tare.errors import RunFailed
from tare.sites import Completed
from tare.sites.fake import FakeHost

PLACE = "/home/user/tare/images"


def host(why: bytes, *, in_namespace: bool) -> FakeHost:
    def rm(argv: Sequence[str], _stdin: bytes) -> Completed:
        return Completed(tuple(argv), 1, b"", why)

    def unshare(argv: Sequence[str], _stdin: bytes) -> Completed:
        return Completed(
            tuple(argv), 0 if in_namespace else 1, b"", b"" if in_namespace else b"unshare: no subuid\n"
        )

    return FakeHost(answers={("rm",): rm, ("unshare",): unshare})


def test_what_a_user_may_not_remove_goes_in_a_namespace_of_theirs() -> None:
    made = host(b"rm: cannot remove 'x': Permission denied\n", in_namespace=True)
    remove_tree(made, PLACE)
    assert made.ran()[-1] == (*USER_NAMESPACE, "rm", "-rf", "--one-file-system", "--", PLACE)


def test_what_does_not_go_there_either_is_told() -> None:
    with pytest.raises(RunFailed, match="cannot be removed: unshare: no subuid"):
        remove_tree(host(b"rm: cannot remove 'x': Permission denied\n", in_namespace=False), PLACE)


def test_no_namespace_helps_against_anything_else() -> None:
    made = host(b"rm: cannot remove 'x': Device or resource busy\n", in_namespace=True)
    with pytest.raises(RunFailed, match="busy"):
        remove_tree(made, PLACE)
    assert not any(argv[0] == "unshare" for argv in made.ran())
