from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.images.tars import file, folder, write_tar

from tare.errors import EnvironmentLacks, RunFailed, StudyError, TimedOut
from tare.images.image_store import ImageStore
from tare.images.oci.unpack import unpack
from tare.images.recipe.apt_sources import choose, parse_indexes, sources_of
from tare.images.recipe.debian_root import build_root
from tare.images.recipe.file import RecipeFile
from tare.images.recipe.recipe import write_layer
from tare.sites import Completed
from tare.sites.fake import FakeHost
from tare.sites.layout import Layout
from tare.sites.sqlite_ledger import SqliteLedger

PASSWD = "root:x:0:0:root:/root:/bin/bash\nmail:x:8:12:mail:/var/mail:/usr/sbin/nologin\n"
GROUP = "root:x:0:\nmail:x:12:\n"
BASE = [
    folder("./"), file("./etc/passwd", PASSWD.encode()), file("./etc/group", GROUP.encode()),
    file("./etc/hostname", b"builder"), file("./etc/apt/sources.list", b"deb ..."),
    file("./etc/apt/sources.list.d/more.list"), file("./var/log/apt/term.log"), file("./var/lib/db/left"),
    file("./usr/bin/unwanted"), file("./usr/bin/wanted"),
]  # fmt: skip


def applied(tmp_path: Path, **keys: object) -> Path:
    """The root of a recipe with these keys over the base."""
    recipe = RecipeFile.model_validate_json(
        json.dumps({"format": 1, "suite": "bookworm", "packages": ["pp"], **keys})
    )
    base = write_tar(tmp_path / "base.tar", BASE)
    write_layer(recipe, tmp_path / "recipe.yaml", base, tmp_path / "recipe.tar")
    root = tmp_path / "root"
    root.mkdir()
    unpack([base, tmp_path / "recipe.tar"], root)
    return root


root_only = pytest.mark.skipif(os.geteuid() != 0, reason="the layer gives files to root")


@root_only
def test_nothing_of_the_building_machine_stays(tmp_path: Path) -> None:
    root = applied(tmp_path)
    kept = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert kept == {"etc/passwd", "etc/group", "var/lib/db/left", "usr/bin/unwanted", "usr/bin/wanted"}


@root_only
def test_users_directories_files_and_removals_are_applied(tmp_path: Path) -> None:
    (tmp_path / "beside").write_bytes(b"\0\1")
    root = applied(
        tmp_path,
        users=[{"name": "db", "uid": 999}],
        directories=[{"path": "/var/lib/db", "owner": "db", "mode": "1770", "empty": True}],
        files=[
            {"path": "/etc/db.cnf", "content": "a", "owner": "mail", "mode": "0640"},
            {"path": "/opt/x", "source": "beside", "mode": "4755"},
        ],
        remove=["/usr/bin/unwanted"],
    )
    assert "db:x:999:999::/nonexistent:/usr/sbin/nologin" in (root / "etc/passwd").read_text().splitlines()
    assert (root / "etc/group").read_text() == GROUP + "db:x:999:\n"
    data, row, tool = ((root / path).stat() for path in ("var/lib/db", "etc/db.cnf", "opt/x"))
    assert (data.st_uid, data.st_gid, data.st_mode & 0o7777) == (999, 999, 0o1770)
    assert (row.st_uid, row.st_gid, row.st_mode & 0o7777) == (8, 12, 0o640)
    assert (tool.st_uid, tool.st_mode & 0o7777) == (0, 0o4755)
    assert not list((root / "var/lib/db").iterdir())
    assert not (root / "usr/bin/unwanted").exists()


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"users": [{"name": "mail", "uid": 900}]}, "exists already"),
        ({"users": [{"name": "new", "uid": 8}]}, "exists already"),
        ({"users": [{"name": "a", "uid": 900}, {"name": "b", "uid": 900}]}, "exists already"),
        ({"files": [{"path": "/a", "content": "", "owner": "nobody-yet"}]}, "no user 'nobody-yet'"),
    ],
)
def test_an_owner_that_cannot_be_meant_is_refused(tmp_path: Path, keys: dict[str, object], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        applied(tmp_path, **keys)


# What apt 2.6 prints; hosts are made up.
LISTING = """\
http://mirror.example/debian/|bookworm|main|Debian|bookworm
http://mirror.example/debian/|bookworm-updates|main|Debian|bookworm-updates
http://mirror.example/debian/|bookworm-backports|main|Debian Backports|bookworm-backports
http://mirror.example/debian-security/|bookworm-security|main|Debian|bookworm-security
http://mirror.example/debian/|bookworm|contrib|Debian|bookworm
http://other.example/repo/debian|bookworm|main|MariaDB|bookworm
http://other.example/apt|nodistro|main|. nodistro|nodistro
"""


def test_a_release_comes_from_where_apt_has_it() -> None:
    assert choose(parse_indexes(LISTING), "bookworm", "/k.gpg") == (
        "deb [signed-by=/k.gpg] http://mirror.example/debian/ bookworm main",
        "deb [signed-by=/k.gpg] http://mirror.example/debian/ bookworm-updates main",
        "deb [signed-by=/k.gpg] http://mirror.example/debian-security/ bookworm-security main",
    )


def test_another_release_comes_from_the_same_mirrors() -> None:
    assert choose(parse_indexes(LISTING), "trixie", None) == (
        "deb http://mirror.example/debian/ trixie main",
        "deb http://mirror.example/debian/ trixie-updates main",
        "deb http://mirror.example/debian-security/ trixie-security main",
    )


def test_a_rolling_release_has_no_updates_of_its_own() -> None:
    assert choose(parse_indexes(LISTING), "sid", None) == ("deb http://mirror.example/debian/ sid main",)


def test_a_source_named_by_its_role_is_known_by_its_code_name() -> None:
    listing = "http://m.example/d/|stable|main|Debian|trixie\nhttp://m.example/s/|stable-security|main|Debian|trixie-security"
    assert choose(parse_indexes(listing), "trixie", None) == (
        "deb http://m.example/d/ trixie main",
        "deb http://m.example/s/ trixie-security main",
    )


@pytest.mark.parametrize(
    "listing",
    [
        "",
        "http://ubuntu.example/ubuntu/|noble|main|Ubuntu|noble",
        "http://mirror.example/debian/|bookworm|main|$(ORIGIN)|$(CODENAME)",
        "http://mirror.example/debian-security/|bookworm-security|main|Debian|bookworm-security",
    ],
    ids=["no apt sources", "Ubuntu", "before the first update", "security alone"],
)
def test_without_a_debian_mirror_the_choice_is_left_to_mmdebstrap(listing: str) -> None:
    assert choose(parse_indexes(listing), "bookworm", None) == ()


def test_a_host_without_apt_leaves_the_choice_to_mmdebstrap() -> None:
    assert sources_of(FakeHost(answers={("apt-get",): RunFailed("apt-get cannot be run")}), "bookworm") == ()


def built(host: FakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    build_root(host, "bookworm", ("a", "b=1"), tmp_path / "base.tar")


def test_mmdebstrap_is_given_mirrors_a_date_and_a_place_and_ends_with_tare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost(answers={("apt-get",): Completed(("apt-get",), 0, LISTING.encode())})
    built(host, tmp_path, monkeypatch)
    argv = host.ran()[-1]
    assert argv[:4] == ("setpriv", "--pdeathsig", "KILL", "unshare")
    assert {"--mount", "--pid", "--kill-child"} <= set(argv)
    assert {"SOURCE_DATE_EPOCH=0", f"TMPDIR={tmp_path}", "mmdebstrap", "--include=a,b=1"} <= set(argv)
    place = argv.index("bookworm")
    assert argv[place + 1] == str(tmp_path / "base.tar")
    assert len(argv[place + 2 :]) == 3


def test_what_apt_calls_an_error_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = b"I: running apt-get update...\nE: Unable to locate package a\nE: mmdebstrap failed to run\n"
    host = FakeHost(answers={("setpriv",): Completed(("setpriv",), 25, b"", words)})
    with pytest.raises(EnvironmentLacks, match="bookworm could not be built: Unable to locate package a") as raised:
        built(host, tmp_path, monkeypatch)
    assert "failed to run" not in str(raised.value)


@pytest.mark.parametrize("why", [RunFailed("setpriv cannot be run"), TimedOut("it did not end within 1800 s")])
def test_a_build_that_cannot_be_run_or_does_not_end_is_the_environment_s_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: RunFailed
) -> None:
    with pytest.raises(EnvironmentLacks, match=why.what):
        built(FakeHost(answers={("setpriv",): why}), tmp_path, monkeypatch)


def test_a_host_without_mmdebstrap_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = "env: \u2018mmdebstrap\u2019: No such file or directory\n".encode()
    host = FakeHost(answers={("setpriv",): Completed(("setpriv",), 127, b"", words)})
    with pytest.raises(EnvironmentLacks, match="No such file") as raised:
        built(host, tmp_path, monkeypatch)
    assert raised.value.hint == "apt-get install mmdebstrap"


def test_a_user_builds_as_root_of_a_user_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    host = FakeHost()
    build_root(host, "bookworm", ("a",), tmp_path / "base.tar")
    argv = host.ran()[-1]
    assert {"--map-root-user", "--map-auto", "--mount", "--kill-child", "--mode=unshare"} <= set(argv)


def test_a_user_without_ids_for_a_namespace_is_told_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    words = b"unshare: failed to find subuid for 1000\n"
    host = FakeHost(answers={("unshare",): Completed(("unshare",), 1, b"", words)})
    with pytest.raises(EnvironmentLacks, match=r"failed to find subuid for 1000.*usermod --add-subuids"):
        build_root(host, "bookworm", ("a",), tmp_path / "base.tar")


def test_only_a_recipe_that_says_so_takes_a_release_past_its_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    host = FakeHost()
    for any_date in (False, True):
        build_root(host, "sid", ("a",), tmp_path / "base.tar", any_date=any_date)
    checked, ignored = (argv for argv in host.ran() if argv[0] == "setpriv")
    assert set(ignored) - set(checked) == {'--aptopt=Acquire::Check-Valid-Until "false"'}


class Mmdebstrap:
    """Writes the tar that it is asked for, and says of a base what it is told to, as often as there are words."""

    def __init__(self, *refusals: bytes) -> None:
        self.refusals = list(refusals)

    def __call__(self, argv: Sequence[str], stdin: bytes) -> Completed:
        if any(word.startswith("TARE_BASE=") for word in argv) and self.refusals:
            return Completed(tuple(argv), 1, b"", self.refusals.pop(0))
        Path(argv[argv.index("bookworm") + 1]).write_bytes(b"a root")
        hooks = "".join(f"I: running {word}\n" for word in argv if "hook=" in word)
        return Completed(tuple(argv), 0, b"", hooks.encode())


@pytest.fixture
def image_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageStore:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    layout = Layout(tmp_path / "home")
    return ImageStore(layout, SqliteLedger(layout.ledger))


def runs(host: FakeHost) -> list[tuple[bool, bool]]:
    """Of each mmdebstrap, whether it went on from a base, and whether it installed what the recipe asks for."""
    return [
        (any(word.startswith("TARE_BASE=") for word in argv), any(word.startswith("--include=") for word in argv))
        for argv in host.ran()
        if argv[0] == "setpriv"
    ]


MADE, ADDED = (False, False), (True, True)


def test_recipes_of_one_release_start_from_one_base_which_the_ledger_keeps(
    tmp_path: Path, image_store: ImageStore
) -> None:
    host = FakeHost(answers={("setpriv",): Mmdebstrap()})
    for package in ("a", "b"):
        build_root(host, "bookworm", (package,), tmp_path / "root.tar", bases=image_store)
    assert runs(host) == [MADE, ADDED, ADDED]
    (base,) = (image_store.layout.images / "bases").iterdir()
    assert [(entry.ident, entry.keep) for entry in image_store.ledger.entries()] == [(str(base), True)]
    build_root(host, "bookworm", ("a",), tmp_path / "root.tar", bases=image_store, any_date=True)
    assert runs(host)[3:] == [MADE, ADDED]


def test_a_base_that_is_damaged_or_older_than_the_mirror_s_packages_is_made_again(
    tmp_path: Path, image_store: ImageStore
) -> None:
    words = b"E: the base cannot be used: other versions are essential now\nE: mmdebstrap failed to run\n"
    host = FakeHost(answers={("setpriv",): Mmdebstrap(words)})
    build_root(host, "bookworm", ("a",), tmp_path / "root.tar", bases=image_store)
    assert runs(host) == [MADE, ADDED, MADE, ADDED]


def test_a_base_that_can_never_be_used_ends_the_build_with_the_reason(
    tmp_path: Path, image_store: ImageStore
) -> None:
    words = b"E: the base cannot be used: tar cannot read it\n"
    host = FakeHost(answers={("setpriv",): Mmdebstrap(words, words)})
    with pytest.raises(EnvironmentLacks, match="the base cannot be used: tar cannot read it"):
        build_root(host, "bookworm", ("a",), tmp_path / "root.tar", bases=image_store)


def test_a_base_whose_making_fails_is_not_kept(tmp_path: Path, image_store: ImageStore) -> None:
    failed = Completed(("setpriv",), 25, b"", b"E: no such suite\n")
    with pytest.raises(EnvironmentLacks, match="no such suite"):
        build_root(
            FakeHost(answers={("setpriv",): failed}), "bookworm", ("a",), tmp_path / "root.tar", bases=image_store
        )
    assert image_store.ledger.entries() == ()
    assert not (image_store.layout.images / "bases").exists()


APT = """#!/bin/sh
[ "$APT_CONFIG" = /of/mmdebstrap ] || { echo "the machine's own apt" >&2; exit 9; }
case $1 in
    update) cp "$MIRROR"/*Release . ;;
    --simulate) while read -r chosen; do echo "Inst $chosen (of Debian)"; done <"$MIRROR/essential" ;;
esac
"""


@pytest.mark.parametrize(
    ("release", "essential", "refusal"),
    [
        ("old", "dash (0.5)", None),
        ("new", "dash (0.5)", None),
        ("new", "dash (0.6)", "other versions are essential now"),
        ("new", "dash (0.5)\nzlib1g (1.3)", "other versions are essential now"),
    ],
    ids=["nothing new", "other packages are new", "a newer version", "one package more"],
)
def test_a_base_is_used_for_as_long_as_the_mirror_has_its_packages(
    tmp_path: Path, image_store: ImageStore, release: str, essential: str, refusal: str | None
) -> None:
    host = FakeHost(answers={("setpriv",): Mmdebstrap()})
    build_root(host, "bookworm", ("a",), tmp_path / "root.tar", bases=image_store)
    (hook,) = (word.partition("=")[2] for word in host.ran()[-1] if word.startswith("--setup-hook="))
    lists, mirror, root = tmp_path / "base/var/lib/apt/lists", tmp_path / "mirror", tmp_path / "root"
    for place in (lists, mirror, root):
        place.mkdir(parents=True)
    (lists / "main_InRelease").write_text("old")
    (tmp_path / "base/essential-in-base").write_text("dash (0.5)\n")
    (mirror / "main_InRelease").write_text(release)
    (mirror / "essential").write_text(f"{essential}\n")
    for name, program in (("apt-get", APT), ("dpkg", "#!/bin/sh\necho amd64\n")):
        (tmp_path / name).write_text(program)
        (tmp_path / name).chmod(0o755)
    base = tmp_path / "base.tar"
    subprocess.run(["tar", "-cf", base, "-C", tmp_path / "base", "."], check=True, timeout=60)
    given = {"TARE_BASE": str(base), "TARE_SUITE": "bookworm", "MMDEBSTRAP_APT_CONFIG": "/of/mmdebstrap"}
    done = subprocess.run(
        ["sh", "-c", hook, "exec", root],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "MIRROR": str(mirror), **given},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    shown = [line for line in done.stderr.splitlines() if line.startswith("E: ")]
    assert (done.returncode, shown) == (
        (0, []) if refusal is None else (1, [f"E: the base cannot be used: {refusal}"])
    ), done.stderr
    assert (root / "essential-in-base").exists() == (refusal is not None)
