"""An engine gets the confinement that the study asks for, and only the profile that was read with the study."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tare.deployments import Confinement
from tare.deployments.container.confinement import security_options
from tare.errors import EnvironmentLacks
from tare.sites.local import LocalHost

PROFILE = b'{\n "defaultAction": "SCMP_ACT_ALLOW"\n}'


@pytest.fixture
def asked(tmp_path: Path) -> Confinement:
    """A profile as the study's plan knows it."""
    (tmp_path / "filter.json").write_bytes(PROFILE)
    return Confinement(seccomp=str(tmp_path / "filter.json"), seccomp_sha256=hashlib.sha256(PROFILE).hexdigest())


def test_docker_gets_the_profile_on_one_line_and_podman_its_path(asked: Confinement) -> None:
    docker = security_options(LocalHost(), asked, of_podman=False)
    assert docker == {"security_opt": ['seccomp={"defaultAction": "SCMP_ACT_ALLOW"}']}
    assert security_options(LocalHost(), asked, of_podman=True) == {"security_opt": [f"seccomp={asked.seccomp}"]}


@pytest.mark.parametrize("of_podman", [False, True])
def test_a_profile_that_changed_since_the_study_was_read_is_refused(asked: Confinement, *, of_podman: bool) -> None:
    Path(asked.seccomp).write_bytes(PROFILE.replace(b"ALLOW", b"ERRNO"))
    with pytest.raises(EnvironmentLacks, match="is not the one that was read with the study"):
        security_options(LocalHost(), asked, of_podman=of_podman)


@pytest.mark.parametrize("content", [None, b"no JSON"])
def test_a_profile_that_is_missing_or_no_json_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "filter.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EnvironmentLacks, match="missing or not JSON"):
        security_options(LocalHost(), Confinement(seccomp=str(path)), of_podman=False)


def test_nothing_is_given_unless_asked_for() -> None:
    assert security_options(LocalHost(), Confinement(), of_podman=False) == {}
    asked = Confinement(seccomp="unconfined", capabilities="none", no_new_privileges=True)
    given = security_options(LocalHost(), asked, of_podman=False)
    assert given == {"security_opt": ["no-new-privileges", "seccomp=unconfined"], "cap_drop": ["ALL"]}
