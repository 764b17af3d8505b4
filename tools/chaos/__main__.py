"""Play faults at random moments of real studies, and show that nothing is lost, doubled, left behind or touched.

    python -m tools.chaos --faults 50 --seed 1                        # a study of fakes: root for most kinds
    python -m tools.chaos --study redis --faults 50 --json out.json   # a real one on a test host: root, dockerd
    python -m tools.chaos --merge out.json other.json                 # the sum of several calls, as a table

Real studies: redis, pod, mariadb, duet, stages, cassandra, cluster, vm, or a shipped one, with `--scale`. Others:
fleet (kills on sites of fakes), pair (between two test hosts), link (an agent and its connection).
A session is one `tare run`; it meets up to three faults and is then killed or left to end. The next goes on with
the same store. Exit code 0 if all held; 1 too where a call could not go on, with what it had counted until then.
The seed that is printed first plays the same faults again, at the same moments.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from tare.sites.layout import Layout
from tools import hosts
from tools.chaos import ground
from tools.chaos.canaries import Canaries, footprint, on_engine
from tools.chaos.faults import FAULTS, named
from tools.chaos.fleet import fleet_trial
from tools.chaos.link import play_link
from tools.chaos.pair import pair_trial
from tools.chaos.real_faults import REAL
from tools.chaos.studies import FAKES, STUDIES, Chosen
from tools.chaos.tally import BrokenOff, Tally, merged
from tools.chaos.trial import Call, Chaos, play
from tools.lab import HostsFailed

_LONGEST_FAKE_S = 3.0
_HIDDEN = "TARE_CHAOS_HIDDEN"


def main(words: Sequence[str] | None = None) -> int:
    """Play the faults; counts go to stdout as JSON."""
    given = _arguments(words)
    if given.merge:
        whole = merged(given.merge)
        print(json.dumps(whole.tree(), indent=1) if given.json else whole.table())
        return 1 if whole.violations or whole.broken_off else 0
    print(f"seed {given.seed}", file=sys.stderr)
    began = time.monotonic()
    tally = Tally(seeds=[f"{given.study or 'fakes'} {given.seed}"])
    os.environ["DOCKER_HOST"] = "unix:///nonexistent"  # whatever engine this machine has is not looked at
    with tempfile.TemporaryDirectory(prefix="tare-chaos-", dir="/var/tmp") as scratch:
        place = Path(scratch)
        place.chmod(0o755)  # another user's tare has a place in it
        try:
            _DRIVERS.get(given.study or "fakes", _on_real)(given, place, tally)
        except (BrokenOff, HostsFailed, KeyboardInterrupt) as error:
            tally.broken_off.append(" ".join(str(error).split()) or "the call was interrupted")
            print(f"chaos: {tally.broken_off[-1]}", file=sys.stderr)
    tally.seconds = round(time.monotonic() - began)
    print("".join(f"VIOLATION: {problem}\n" for problem in tally.violations), end="", file=sys.stderr)
    print(json.dumps(tally.tree(), indent=1))
    if given.json:
        given.json.write_text(json.dumps(tally.tree(), indent=1))
    return 1 if tally.violations or tally.broken_off else 0


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.chaos", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument(
        "--study",
        help=f"In place of the fakes: {', '.join((*STUDIES, *_DRIVERS))}, or one that comes with tare.",
    )
    parser.add_argument("--scale", default="demo", help="Of one that comes with tare.")
    parser.add_argument("--kinds", nargs="+", default=[], help="Words in the names of the faults to play.")
    parser.add_argument(
        "--longest-s", type=float, help="Latest moment of a fault after the last, on fakes (3) or the study's own."
    )
    parser.add_argument("--minutes", type=float, default=float("inf"), help="Play none after so long.")
    parser.add_argument("--json", type=Path, help="A file for the counts.")
    parser.add_argument("--merge", type=Path, nargs="+", help="Add up the counts of such files.")
    return parser.parse_args(words)


def _on_fakes(given: argparse.Namespace, place: Path, tally: Tally) -> None:
    (place / "study.yaml").write_text(FAKES)
    with ground.here(place) as here:
        trial = Chaos(
            [*ground.FAKES, "run", str(place / "study.yaml"), "--quiet"],
            place / "disk" / "stores",
            Random(given.seed),
            given.longest_s or _LONGEST_FAKE_S,
            layout=Layout(place / "home"),
            ground=here,
            env=here.env,
            faults=named(FAULTS, given.kinds),
            tally=tally,
        )
        _play(trial, Canaries(place / "canaries"), given)


def _on_real(given: argparse.Namespace, place: Path, tally: Tally) -> None:
    chosen = STUDIES.get(given.study, Chosen("", ("mariadb", "sysbench", "tare-load")))
    study, options = str(place / "study.yaml"), list[str]()
    if chosen.text:
        Path(study).write_text(chosen.text)
    else:
        study, options = given.study, ["--scale", given.scale]
    with ground.on_test_host(place, chosen.images, machines=chosen.machines) as host:
        also = on_engine(host)
        trial = Chaos(
            [*ground.TARE, "run", study, *options, "--quiet"],
            place / "disk" / "stores",
            Random(given.seed),
            given.longest_s or chosen.longest_s,
            layout=Layout(place / "home"),
            ground=host,
            env=host.env,
            faults=named(REAL, given.kinds),
            end_s=chosen.end_s,
            beside_s=chosen.beside_s,
            there=(lambda session: bool(session.part(chosen.awaits))) if chosen.awaits else None,
            fakes=False,
            before=footprint(host),
            tally=tally,
        )
        _play(trial, Canaries(place / "canaries", also), given)


def _call(given: argparse.Namespace, place: Path, tally: Tally) -> Call:
    return Call(place, Random(given.seed), tally, given.longest_s, given.kinds)


def _on_fleet(given: argparse.Namespace, place: Path, tally: Tally) -> None:
    trial = fleet_trial(_call(given, place, tally))
    _play(trial, Canaries(place / "canaries"), given)


def _on_pair(given: argparse.Namespace, place: Path, tally: Tally) -> None:
    with hosts.made(2) as pair:
        trial = pair_trial(pair, _call(given, place, tally))
        _play(trial, Canaries(place / "canaries"), given)


def _on_link(given: argparse.Namespace, _place: Path, tally: Tally) -> None:
    play_link(given.faults, Random(given.seed), tally)


_DRIVERS: Mapping[str, Callable[[argparse.Namespace, Path, Tally], None]] = {
    "fakes": _on_fakes, "fleet": _on_fleet, "pair": _on_pair, "link": _on_link,
}  # fmt: skip


def _play(trial: Chaos, canaries: Canaries, given: argparse.Namespace) -> None:
    try:
        play(trial, canaries, given.faults, time.time() + 60 * given.minutes)
    finally:
        canaries.end()


def _hide_mounts() -> None:
    """Begin anew in a mount namespace of its own.

    A namespace that another program makes meanwhile would keep a copy of each disk mounted, broken as it is.
    """
    if os.geteuid() != 0 or _HIDDEN in os.environ or (unshare := shutil.which("unshare")) is None:
        return
    words = [unshare, "--mount", "--propagation=private", "--", sys.executable, "-m", "tools.chaos", *sys.argv[1:]]
    os.execve(unshare, words, {**os.environ, _HIDDEN: "1"})


if __name__ == "__main__":
    _hide_mounts()
    sys.exit(main())
