"""sites.yaml: what is read, and the line, key and hint of each fault."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tare.errors import StudyError
from tare.sites.file import LOCAL, SitesFile, SiteSpec, SshSpec, display_name, load_sites, resolve
from tare.sites.schema import SITES_SCHEMA
from tare.study.reading.document import parse
from tare.study.values import Strict

GOOD = """\
format: 1
sites:
  - name: rack-3
    sut: {ssh: root@10.0.0.2}
    client: {ssh: root@10.0.0.3, address: 192.168.7.3}
  - name: cluster
    sut: [{ssh: a}, {ssh: b}, local]
    client: {ssh: "ssh://root@c:2222", home: /srv/tare}
  - {name: here, sut: local, client: {ssh: x}, swap: true}
  - {name: one, sut: {ssh: x}, client: {ssh: x}}
"""


def test_the_first_site_is_the_default_and_others_go_by_name(tmp_path: Path) -> None:
    file = tmp_path / "sites.yaml"
    file.write_text(GOOD)
    sites = load_sites(file)
    assert sites.chosen().client == SshSpec(ssh="root@10.0.0.3", address="192.168.7.3")
    assert sites.chosen("here").nodes == (LOCAL,)
    assert sites.chosen("here").swap
    with pytest.raises(StudyError, match=r'no site \'clustre\' \(did you mean "cluster"\?\)'):
        sites.chosen("clustre")


def test_a_list_is_one_host_a_node() -> None:
    cluster = resolve(parse(GOOD, "s")).chosen("cluster")
    assert [display_name(host) for host in cluster.nodes] == ["a", "b", "local"]
    assert [display_name(host) for host in cluster.hosts] == ["a", "b", "local", "c"]


def test_one_host_may_play_both_parts() -> None:
    assert len(resolve(parse(GOOD, "s")).chosen("one").hosts) == 1


@pytest.mark.parametrize(
    ("destination", "name"),
    [
        ("root@10.0.0.2", "10.0.0.2"),
        ("alias", "alias"),
        ("ssh://root@db.example.org:2222", "db.example.org"),
        ("ssh://root@[fe80::1]:22", "fe80-1"),
    ],
)
def test_a_host_without_a_name_is_called_by_its_destination(destination: str, name: str) -> None:
    assert SshSpec(ssh=destination).display_name == name


FAULTS = [
    ("format: 1", "format: 2", "s:1:1: format: format 2 is newer than this tare"),
    ("format: 1", "format: x", "s:1:1: format: expected 1, got 'x'"),
    ("format: 1\n", "", "s:1:1: format: this key is missing"),
    ("ssh: root@10.0.0.2", "shh: root@10.0.0.2", 's:4:11: sites[0].sut.shh: unknown key (did you mean "ssh"?)'),
    ("ssh: root@10.0.0.2", "sudo: true", "sites[0].sut.ssh: this key is missing"),
    ("ssh: root@10.0.0.3", "ssh: [x]", "s:5:14: sites[0].client.ssh: expected text, got a list"),
    ("ssh: x}, swap", "ssh: -oProxyCommand=x}, swap", "sites[2].client.ssh: a destination of ssh(1)"),
    ("ssh: x}, swap", "ssh: a b}, swap", "sites[2].client.ssh: a destination of ssh(1)"),
    ("ssh: x}, swap", "ssh: 'root:pw@x'}, swap", "sites[2].client.ssh: passwords are not supported"),
    ("ssh: x}, swap", "ssh: 'ssh://root:pw@x'}, swap", "sites[2].client.ssh: passwords are not supported"),
    ("192.168.7.3", "127.0.0.1", "client.address: no other host can be reached at 127.0.0.1, which is local"),
    ("192.168.7.3", "'::'", "client.address: no other host can be reached at ::, which no host can have"),
    ("192.168.7.3", "224.0.0.1", "client.address: no other host can be reached at 224.0.0.1, which no host"),
    ("192.168.7.3", "fe80::1", "client.address: no other host can be reached at fe80::1, which is valid on one"),
    ("192.168.7.3", "here", "s:5:34: sites[0].client.address: expected an IPv4 or IPv6 address, got 'here'"),
    ("home: /srv/tare", "home: tare", "s:8:40: sites[1].client.home: 'tare' is not an absolute path"),
    ("home: /srv/tare", "engine: tcp", "s:8:40: sites[1].client.engine: 'tcp' is not an absolute path"),
    ("home: /srv/tare", "ssh_config: x", "s:8:40: sites[1].client.ssh_config: 'x' is not an absolute path"),
    ("home: /srv/tare", "name: a/b", "s:8:40: sites[1].client.name: 'a/b' is not a plain name"),
    ("home: /srv/tare", "container_address: 10.0.0.9", "sites[1].client.container_address: the prefix length"),
    ("home: /srv/tare", "container_address: x/24", "sites[1].client.container_address: expected an IPv4 address"),
    ("ssh: x}, swap", "ssh: x, sudo: yes}, swap", "sites[2].client.sudo: expected true or false, got 'yes'"),
    ("sut: local", "sut: lokal", "s:9:18: sites[2].sut: unknown value 'lokal' (did you mean \"local\"?)"),
    ("sut: local", "sut: 3", "s:9:18: sites[2].sut: expected `local` or a mapping with `ssh`"),
    ("[{ssh: a}, {ssh: b}, local]", "[]", "s:7:5: sites[1].sut: must not be empty"),
    ("{ssh: b}", "{ssh: a}", "s:7:21: sites[1].sut[1]: two nodes on a (the first is on line 7"),
    ("name: cluster", "name: rack-3", "s:6:5: sites[1].name: a second site 'rack-3' (the first is on line 3)"),
    ("name: cluster", "name: a/b", "s:6:5: sites[1].name: 'a/b' is not a plain name"),
    ("root@10.0.0.3,", "root@10.0.0.2,", "s:5:5: sites[0].client: two hosts called 10.0.0.2 (the other is on"),
    ("root@10.0.0.3,", "root@10.0.0.2, name: z,", "s:5:5: sites[0].client: root@10.0.0.2 is called z here and"),
    ("{ssh: root@10.0.0.2}", "{ssh: q, address: 192.168.7.3}", "client.address: two hosts with the address"),
    ("{ssh: a}, {ssh: b}", "{ssh: a, address: 'fd::1'}, {ssh: b, address: 'fd:0::1'}", "sut[1].address: two hosts"),
    ("swap: true", "swap: 1", "s:9:48: sites[2].swap: expected true or false, got 1"),
    ("client: {ssh: x}, swap", "client: local, swap", "sites[2].swap: only a server and a client on separate"),
    ("{name: here", "{nam: here", 's:9:6: sites[2].nam: unknown key (did you mean "name"?)'),
    (GOOD, "format: 1\nsites: []\n", "s:2:1: sites: must not be empty"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "sentence"), FAULTS, ids=[sentence for _, _, sentence in FAULTS])
def test_each_fault_is_told_with_its_line_key_and_hint(right: str, wrong: str, sentence: str) -> None:
    assert right in GOOD
    with pytest.raises(StudyError) as raised:
        resolve(parse(GOOD.replace(right, wrong, 1), "s"))
    assert sentence in str(raised.value)
    assert raised.value.hint


@pytest.mark.parametrize("model", [SitesFile, SiteSpec, SshSpec])
def test_every_field_is_wrong_in_one_of_them(model: type[Strict]) -> None:
    named = {key for _, _, sentence in FAULTS for key in re.findall(r"(?:^|[. ])(\w+)(?:\[\d+\])?: ", sentence)}
    assert set(model.model_fields) <= named


def test_the_schema_for_editors_fits_what_is_read() -> None:
    schema = SITES_SCHEMA.tree()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert not list(validator.iter_errors(parse(GOOD, "s").tree))
    wrong = parse(GOOD.replace("ssh: root@10.0.0.2", "shh: x"), "s").tree
    assert list(validator.iter_errors(json.loads(json.dumps(wrong))))
