"""Machines from OpenStack with a real Keystone: credentials, tokens and the catalogue are its own.

Compute, network, images and volumes are those of the small OpenStack of the unit tests, which has Keystone confirm
each token that it is given.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openstack
import pytest
from tests.integration.clouds.keystone import PASSWORD, PROJECT, REGION, USER, Keystone, keystone
from tests.unit.sites.cloud.calls import done, refused
from tests.unit.sites.cloud.conftest import place  # noqa: F401 - a fixture
from tests.unit.sites.cloud.stack import SERVICES, Stack, serving
from tests.unit.sites.cloud.test_openstack import PLAN

pytestmark = [
    pytest.mark.slow,  # it is installed first
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),  # openstacksdk warns of its own calls
]
BY_PASSWORD = {
    "username": USER, "password": PASSWORD, "project_name": PROJECT, "user_domain_id": "default",
    "project_domain_id": "default",
}  # fmt: skip


@pytest.fixture(scope="module")
def identity() -> Iterator[Keystone]:
    with keystone() as running:
        yield running


@pytest.fixture
def stack(identity: Keystone, place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:  # noqa: F811 - the same
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    with serving() as running:
        running.accepts = identity.accepts
        catalogue = _cloud(identity).identity
        made = [
            catalogue.create_endpoint(
                service_id=service.id, interface="public", region_id=REGION, url=f"{running.url}/{SERVICES[kind]}"
            )
            for kind in SERVICES
            if kind != "identity"
            for service in [_service(catalogue, kind)]
        ]
        yield running
        for endpoint in made:
            catalogue.delete_endpoint(endpoint)


def _cloud(identity: Keystone) -> Any:
    return openstack.connect(auth={**BY_PASSWORD, "auth_url": identity.url}, region_name=REGION)


def _service(catalogue: Any, kind: str) -> Any:
    return next(iter(catalogue.services(type=kind)), None) or catalogue.create_service(type=kind, name=kind)


def configured(monkeypatch: pytest.MonkeyPatch, secret: Path, **cloud: Any) -> None:
    """A clouds.yaml beside the folder of the test, as openstacksdk's own sources name it."""
    secret.write_text(json.dumps({"clouds": {"test": {"region_name": REGION, **cloud}}}))  # JSON is YAML
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(secret))
    monkeypatch.setenv("OS_CLOUD", "test")
    Path("plan.yaml").write_text(PLAN)


def test_a_password_gives_a_token_the_catalogue_and_machines(
    stack: Stack, identity: Keystone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path.parent / f"{tmp_path.name}-clouds.yaml"
    configured(monkeypatch, secret, auth={**BY_PASSWORD, "auth_url": identity.url})
    done("sites", "create", "plan.yaml", "--yes")
    assert len(stack.servers) == 4
    listed = done("sites", "list")
    assert "seybold" in listed.stdout
    done("sites", "destroy", "--yes")
    assert stack.left() == []
    written = "".join(path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())
    assert PASSWORD not in written


def test_an_application_credential_does_and_one_that_was_withdrawn_does_not(
    stack: Stack, identity: Keystone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = _cloud(identity)
    user = cloud.current_user_id
    credential = cloud.identity.create_application_credential(user, f"tare-{tmp_path.name}")
    auth = {
        "auth_url": identity.url,
        "application_credential_id": credential.id,
        "application_credential_secret": credential.secret,
    }
    secret = tmp_path.parent / f"{tmp_path.name}-clouds.yaml"
    configured(monkeypatch, secret, auth_type="v3applicationcredential", auth=auth)
    done("sites", "create", "plan.yaml", "--yes")
    assert len(stack.servers) == 4
    done("sites", "destroy", "--yes")
    cloud.identity.delete_application_credential(user, credential)
    failed = refused("sites", "create", "plan.yaml", "--yes")
    assert "Could not find Application Credential" in str(failed)
    assert "openstacksdk takes them from OS_CLOUD with clouds.yaml" in str(failed)
    assert credential.secret not in str(failed)


@pytest.mark.parametrize(
    "change",
    [{"password": "another"}, {"username": "nobody"}, {"project_name": "absent"}],
    ids=lambda each: next(iter(each)),
)
def test_what_keystone_refuses_is_one_sentence_with_where_credentials_come_from(
    stack: Stack,
    identity: Keystone,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, str],
) -> None:
    del stack
    secret = tmp_path.parent / f"{tmp_path.name}-clouds.yaml"
    configured(monkeypatch, secret, auth={**BY_PASSWORD, **change, "auth_url": identity.url})
    failed = str(refused("sites", "create", "plan.yaml", "--yes"))
    assert "connecting to OpenStack was not possible: The request you have made requires authentication" in failed
    assert "openstacksdk takes them from OS_CLOUD with clouds.yaml" in failed
    assert PASSWORD not in failed


def test_a_region_that_the_catalogue_lacks_is_named(
    stack: Stack, identity: Keystone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del stack
    secret = tmp_path.parent / f"{tmp_path.name}-clouds.yaml"
    configured(monkeypatch, secret, region_name="RegionTwo", auth={**BY_PASSWORD, "auth_url": identity.url})
    Path("plan.yaml").write_text(PLAN.replace("RegionOne", "RegionTwo"))
    assert "is the region spelt as the cloud spells it" in str(refused("sites", "create", "plan.yaml", "--yes"))
