"""Mutation testing of the rules: changes a sample of their code, one place at a time, and asks who notices.

`python ci/tools/mutation.py [--sample N] [--seed N] [--minutes N]` works in a copy of the repository and prints the
changes that no test noticed, as a diff each. Only tests/rules and tests/engine count as witnesses. Needs cosmic-ray.
What survived, and why, stands in docs/rule-mutation.md.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "conformance/signet_conformance"
TIMEOUT_S = 300
PYTEST = f"{sys.executable} -m pytest -x -q -p no:randomly -p no:cacheprovider"
# The cases notice most, and fast; only what they let pass meets the rest.
WITNESSES = (
    f"{PYTEST} tests/rules/test_cases.py && {PYTEST} tests/rules tests/engine --deselect tests/rules/test_cases.py"
)
CONFIG = f"""
[cosmic-ray]
module-path = ["{PACKAGE}/rules", "{PACKAGE}/engine.py"]
timeout = {TIMEOUT_S}
excluded-modules = []
test-command = "env PYTHONPATH={{folder}}/conformance:{{folder}} sh -c '{WITNESSES}'"

[cosmic-ray.distributor]
name = "local"

[cosmic-ray.filters.operators-filter]
# A union in an annotation is never evaluated.
exclude-operators = ["core/ReplaceBinaryOperator_BitOr_.*"]
"""
_PLANNED = """
SELECT job_id FROM mutation_specs WHERE job_id NOT IN (SELECT job_id FROM work_results)
ORDER BY module_path, operator_name, occurrence, operator_args
"""

_FORGET_THE_REST = """
DELETE FROM work_results WHERE job_id NOT IN (SELECT job_id FROM kept);
DELETE FROM mutation_specs WHERE job_id NOT IN (SELECT job_id FROM kept);
DELETE FROM work_items WHERE job_id NOT IN (SELECT job_id FROM kept);
"""


def main() -> int:
    """Change, run, tell; the exit status is 0 whatever survived: survivors are for a person to judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=60, help="how many changes are tried (default: 60)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default: 1)")
    parser.add_argument("--minutes", type=float, default=15, help="stop after that long, and tell (default: 15)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="signet-mutation-") as temporary:
        folder = Path(temporary) / "repository"
        leave_out = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "node_modules", "site")
        shutil.copytree(ROOT, folder, ignore=leave_out)
        (folder / "cosmic-ray.toml").write_text(CONFIG.replace("{folder}", str(folder)), "utf-8")
        session = folder / "session.sqlite"
        _cosmic_ray(folder, "cosmic-ray", "init", "cosmic-ray.toml", session.name)
        _cosmic_ray(folder, "cr-filter-operators", session.name, "cosmic-ray.toml")
        every = _sample(session, given.sample, given.seed)
        with contextlib.suppress(subprocess.TimeoutExpired):
            _cosmic_ray(folder, "cosmic-ray", "exec", "cosmic-ray.toml", session.name, minutes=given.minutes)
        return _tell(session, every)


def _cosmic_ray(folder: Path, program: str, *words: str, minutes: float | None = None) -> None:
    command = [str(Path(sys.executable).parent / program), *words]
    subprocess.run(command, cwd=folder, check=True, timeout=None if minutes is None else minutes * 60)


def _sample(session: Path, size: int, seed: int) -> int:
    """Keep a sample of the changes that are planned; how many there were."""
    with closing(sqlite3.connect(session)) as database, database:
        jobs = [job for (job,) in database.execute(_PLANNED)]
        # Seeded, so that anyone can try the same changes again: that is what the rule for secrets warns of.
        kept = random.Random(seed).sample(jobs, min(size, len(jobs)))  # noqa: S311
        database.execute("CREATE TEMP TABLE kept (job_id)")
        database.executemany("INSERT INTO kept VALUES (?)", [(job,) for job in kept])
        database.executescript(_FORGET_THE_REST)
    return len(jobs)


def _tell(session: Path, every: int) -> int:
    with closing(sqlite3.connect(session)) as database:
        rows = database.execute(
            "SELECT m.module_path, m.start_pos_row, m.operator_name, r.test_outcome, r.diff FROM mutation_specs m"
            " JOIN work_results r ON r.job_id = m.job_id ORDER BY 1, 2"
        ).fetchall()
    survived = [row for row in rows if "SURVIVED" in str(row[3]).upper()]
    for module, line, operator, outcome, diff in survived:
        print(f"{outcome}: {module}:{line} {operator}\n{diff}\n")
    print(f"{len(rows) - len(survived)} of {len(rows)} changes were noticed; {every} could be made")
    return 0


if __name__ == "__main__":
    sys.exit(main())
