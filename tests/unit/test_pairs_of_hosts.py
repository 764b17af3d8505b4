"""Test hosts in pairs: the sites file that they make, and which of them lose power."""

from __future__ import annotations

from pathlib import Path

import pytest

from tare.sites.file import load_sites
from tools import hosts
from tools.chaos import power
from tools.lab import HostsFailed, Lab, TestHost


def test_every_two_hosts_are_a_site(tmp_path: Path) -> None:
    lab = Lab("0abc")
    (tmp_path / "sites.yaml").write_text(hosts.sites_of_pairs([TestHost(lab, n, 7) for n in range(1, 7)]))
    sites = load_sites(tmp_path / "sites.yaml").sites
    assert [site.name for site in sites] == ["pair-1", "pair-2", "pair-3"]
    assert [[getattr(host, "ssh", None) for host in (site.sut, site.client)] for site in sites] == [
        [f"tare-0abc-h{n}", f"tare-0abc-h{n + 1}"] for n in (1, 3, 5)
    ]


@pytest.mark.parametrize(("site", "why"), [("rack-1", "no pair"), ("pair-", "no pair"), ("pair-1", "no host")])
def test_only_pairs_that_are_there_lose_power(site: str, why: str) -> None:
    with pytest.raises(HostsFailed, match=why):
        hosts.cut_power(Lab("0abc"), site)


def test_a_study_that_never_comes_so_far_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert power.main([str(tmp_path / "store"), "--within", "0"]) == 1
    assert capsys.readouterr().err == "tare: the store had no 6 good runs within 0 s\n"
