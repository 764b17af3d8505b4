"""Measure a seeded random sample of mutants of the statistics, the validity rules, the stopping rules and parity.

    python -m tools.mutation_sample COSMIC_RAY TREE GROUPS.json --mutants 150 --out RESULT.json

COSMIC_RAY is the `cosmic-ray` of an environment that also has tare's dependencies; tare itself does not need it.
TREE is a copy of the repository, because cosmic-ray edits the files. GROUPS.json is a list of groups with `name`,
`modules` (files to mutate) and `tests` (files that should notice), relative to TREE.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

SEED = 17
TIMEOUT_S = 90.0

CONFIG = """
[cosmic-ray]
module-path = [{modules}]
timeout = {timeout}
excluded-modules = []
test-command = "{command}"

[cosmic-ray.distributor]
name = "local"
"""


def main() -> None:
    """Print how many mutants were killed, group by group; write each one with its outcome to `--out`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cosmic_ray", type=Path)
    parser.add_argument("tree", type=Path)
    parser.add_argument("groups", type=Path)
    parser.add_argument("--mutants", type=int, default=150)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    tree, groups = options.tree.resolve(), json.loads(options.groups.read_text())
    sessions = [_session(options.cosmic_ray, tree, group) for group in groups]
    candidates = [(session, job) for session in sessions for job in _jobs(session)]
    sample = set(random.Random(SEED).sample(candidates, min(options.mutants, len(candidates))))
    print(f"{len(sample)} of {len(candidates)} mutants", file=sys.stderr)
    results = []
    for group, session in zip(groups, sessions, strict=True):
        _keep(session, {job for at, job in sample if at == session})
        _call(options.cosmic_ray, tree, "exec", str(session.with_suffix(".toml")), str(session))
        outcomes = _outcomes(session)
        results += [{"group": group["name"], **outcome} for outcome in outcomes]
        print(group["name"], dict(Counter(outcome["outcome"] for outcome in outcomes)), flush=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")


def _session(cosmic_ray: Path, tree: Path, group: dict[str, Any]) -> Path:
    session = tree / f"mutants-{group['name']}.sqlite"
    session.unlink(missing_ok=True)
    tests = " ".join(group["tests"])
    command = f"{cosmic_ray.parent / 'python'} -m pytest -q -x -p no:cacheprovider {tests}"
    modules = ", ".join(f'"{module}"' for module in group["modules"])
    config = session.with_suffix(".toml")
    config.write_text(CONFIG.format(modules=modules, timeout=TIMEOUT_S, command=command))
    _call(cosmic_ray, tree, "init", str(config), str(session))
    return session


def _call(cosmic_ray: Path, tree: Path, *argv: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(tree / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([cosmic_ray, *argv], cwd=tree, env=environment, check=True)


def _jobs(session: Path) -> list[str]:
    with closing(sqlite3.connect(session)) as connection:
        rows = connection.execute(
            "SELECT job_id FROM mutation_specs ORDER BY module_path, operator_name, occurrence, job_id"
        )
        return [str(job) for (job,) in rows]


def _keep(session: Path, jobs: set[str]) -> None:
    with closing(sqlite3.connect(session)) as connection, connection:
        for job in set(_jobs(session)) - jobs:
            connection.execute("DELETE FROM mutation_specs WHERE job_id = ?", (job,))
            connection.execute("DELETE FROM work_items WHERE job_id = ?", (job,))


def _outcomes(session: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(session)) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute(
            "SELECT module_path, start_pos_row AS line, operator_name, test_outcome, worker_outcome, diff"
            " FROM mutation_specs JOIN work_results USING (job_id) ORDER BY module_path, line"
        ).fetchall()
    return [
        {
            "module": row["module_path"],
            "line": row["line"],
            "operator": row["operator_name"],
            "outcome": str(row["test_outcome"] or row["worker_outcome"]).rpartition(".")[2].lower(),
            "diff": row["diff"],
        }
        for row in rows
    ]


if __name__ == "__main__":
    main()
