"""The numbers of a user, by the image's own files."""

from __future__ import annotations

import pytest

from tare.deployments.containerd.accounts import Account, account
from tare.errors import RunFailed

PASSWD = "root:x:0:0:root:/root:/bin/sh\ndb:x:900:901:database:/data:/bin/sh\nbroken\n"
GROUP = "root:x:0:\ndb:x:901:\nextra:x:902:other,db\nempty:x:903:\n"


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("", Account(0, 0, (0,), "/root")),
        ("db", Account(900, 901, (901, 902), "/data")),
        ("900", Account(900, 901, (901, 902), "/data")),
        ("db:empty", Account(900, 903, (903,), "/data")),
        ("db:77", Account(900, 77, (77,), "/data")),
        ("4711", Account(4711, 0, (0,), "/")),
    ],
)
def test_users_are_the_images_own(wanted: str, expected: Account) -> None:
    assert account(wanted, PASSWD, GROUP) == expected


@pytest.mark.parametrize(("wanted", "reason"), [("nobody", "no user 'nobody'"), ("db:none", "no group 'none'")])
def test_a_name_that_the_image_does_not_know_is_told(wanted: str, reason: str) -> None:
    with pytest.raises(RunFailed, match=reason):
        account(wanted, PASSWD, GROUP)
