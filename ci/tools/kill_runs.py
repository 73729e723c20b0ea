"""Kills runs of the reference harness by SIGKILL at random moments, resumes them, and checks the end of each.

    PYTHONPATH=. python ci/tools/kill_runs.py [--runs 1000] [--beside 3] [--seed N]

Each run makes two calls of a tool, each of which must take effect only once. It is killed once or more, and so are its
resumptions; one in ten is not resumed, so that the next run has to end its session. All requests go through the
recorder to an embedded daemon. The exit status is 1 unless every run had an equal end or refused with a reason, no call
took effect twice, every session was ended, and the rules find no breach in the recording.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any, Final

from bench_harness import running
from tests.reference_harness.run.killed import DEPLOYED, PAUSE_VARIABLE, REPLY, STEPS, perform_and_exit

from signet_conformance import trace
from signet_conformance.engine import judge
from signet_reference_harness.run.run_journal import UNKNOWN
from signet_reference_harness.run.session_file import read_session

PAUSE_S: Final = 0.02
LEFT: Final = 10
"""One of this many runs is not resumed."""
HOOKS: Final = "/api/hooks/session-"
FORKS: Final = multiprocessing.get_context("fork")
"""A fork has imported the harness already."""


class Storm:
    """The runs of one agent, one after the other, with counts and errors."""

    def __init__(self, home: Path, environ: Mapping[str, str], seed: int) -> None:
        self._home = home
        self._environ = dict(environ)
        self._random = random.Random(seed)
        self._took = [0.5]
        """Seconds of the last runs that were not killed."""
        self.counted: Counter[str] = Counter()
        self.wrong: list[str] = []

    def run(self, number: int) -> None:
        """Begin a run, kill it, resume it until it is over, and check it."""
        run, project, summary = f"run-{number}", self._home / "projects" / str(number), self._home / f"{number}.json"
        project.mkdir(parents=True)
        begun = {"cwd": project, "prompt": "Deploy.", "run_id": run, "session": f"session-{number}", "summary": summary}
        status = self._performed(begun, kill=True)
        while status is None and number % LEFT:
            # Resumptions are killed too, half of them.
            status = self._performed({"resume": run, "summary": summary}, kill=self._random.random() < 0.5)
            if status == 2:
                reason = json.loads(summary.read_bytes())["error"]["message"].rpartition(": ")[2]
                self.counted[f"refused to be resumed: {reason}"] += 1
                # It was killed after its end, or before its beginning; in the second case it is begun again.
                status = 0 if reason == "the run is finished" else self._performed(begun, kill=False)
        if status is None:
            self.counted["left as the kill left them"] += 1
        elif status == 0:
            self._check(number, project)
        else:
            self.wrong.append(f"{run}: exit status {status}: {summary.read_text()}")

    def end(self) -> None:
        """Perform one more run, which ends the sessions that kills have left open."""
        project = self._home / "projects" / "last"
        project.mkdir(parents=True)
        if self._performed({"cwd": project, "prompt": "Deploy."}, kill=False) != 0:
            self.wrong.append("the last run did not come to its end")
        owed = (self._home / "state" / "open-sessions").glob("*.json")
        self.wrong += [f"the end of a session is still owed: {path.read_text()}" for path in owed]

    def _performed(self, options: dict[str, Any], *, kill: bool) -> int | None:
        """Perform a run in a process, and return its exit status; None if it was killed."""
        began = time.monotonic()
        process = FORKS.Process(target=perform_and_exit, args=(options, self._environ))
        process.start()
        # Wait for the moment of the kill, or for the end of the run.
        process.join(self._random.uniform(0, 1.2 * mean(self._took[-10:])) if kill else None)
        process.kill()
        process.join()
        killed = process.exitcode == -signal.SIGKILL
        self.counted["processes killed" if killed else "processes that came to their end"] += 1
        if not kill and process.exitcode == 0:
            self._took.append(time.monotonic() - began)
        return None if killed else process.exitcode

    def _check(self, number: int, project: Path) -> None:
        session = read_session(self._home / "state" / "sessions" / f"session-{number}.jsonl")
        if session.turns != (("user", "Deploy."), ("assistant", REPLY)) or session.runs != {f"run-{number}": "done"}:
            self.wrong.append(f"run-{number}: ended as {session.turns}, {session.runs}")
        results = [message.content for message in session.conversation.messages if message.role == "tool"]
        result_of = dict(zip(STEPS, results, strict=True))
        deployed = (project / DEPLOYED).read_text().splitlines() if (project / DEPLOYED).exists() else []
        unknown = {place for place in STEPS if UNKNOWN in result_of[place]}
        if len(deployed) != len(set(deployed)) or not set(STEPS) - set(deployed) <= unknown:
            self.wrong.append(f"run-{number}: deployed to {deployed}, and told the model {result_of}")
        self.counted["runs that came to the same end"] += 1
        self.counted["tool calls of unknown outcome"] += len(unknown)
        if number % LEFT == 1 and self._performed({"resume": f"run-{number}"}, kill=False) != 2:
            self.wrong.append(f"run-{number}: was finished, and did not refuse")


def perform_all(home: Path, environ: Mapping[str, str], numbers: range, seed: int) -> None:
    """Perform these runs, and write counts and errors to `storm.json`, even after an exception."""
    storm = Storm(home, environ, seed)
    try:
        for number in numbers:
            storm.run(number)
        storm.end()
    finally:
        (home / "storm.json").write_text(json.dumps([storm.counted, storm.wrong]))


def unended(recording: Any) -> Iterator[str]:
    """What is wrong with the starts and ends in the recording."""
    hooks: dict[str, list[tuple[str, str]]] = {}
    for exchange in recording.exchanges:
        if exchange.request.path.startswith(HOOKS):
            key, name = exchange.request.body.json["sessionKey"], exchange.request.path.removeprefix(HOOKS)
            lost = f" ({exchange.error})" if exchange.error else ""
            when = f"{exchange.t0:.2f} to {exchange.t1:.2f} s"
            hooks.setdefault(key, []).append((name, f"{name} at {when}{lost}"))
    for session, rows in hooks.items():
        names, whole = [name for name, _ in rows], ", ".join(text for _, text in rows)
        if names[-1] != "end":
            yield f"{session}: not ended: {whole}"
        if any(pair == ("start", "start") for pair in pairwise(names)):
            yield f"{session}: started twice without an end: {whole}"


def main() -> int:
    """Read the options, kill, and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1_000, help="how many runs are killed (default: 1000)")
    parser.add_argument("--beside", type=int, default=3, help="at a time (default: 3)")
    parser.add_argument("--seed", type=int, default=1, help="of the instants (default: 1)")
    options = parser.parse_args()
    began = time.monotonic()
    # The daemon ignores projects in /tmp.
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="killed-runs-") as folder:
        home = Path(folder)
        out = home / "trace.jsonl"
        agents = [part for place in range(options.beside) for part in ("--agent", f"atlas-{place}")]
        declared = ("--target", "reference", "--harness", "reference", *agents)
        with (
            running("signet_conformance.daemon", "--until-stdin-closes") as daemon,
            running("signet_recording_proxy", "--upstream", daemon, "--out", str(out), *declared) as recorder,
        ):
            environ = {**os.environ, "SIGNET_DAEMON_URL": recorder, PAUSE_VARIABLE: str(PAUSE_S)}
            processes = []
            for place in range(options.beside):
                of = home / str(place)
                of.mkdir()
                own = {"SIGNET_AGENT_ID": f"atlas-{place}", "SIGNET_PATH": str(of / "workspace")}
                own["SIGNET_HARNESS_STATE_DIR"] = str(of / "state")
                numbers = range(place, options.runs, options.beside)
                storm = (of, {**environ, **own}, numbers, options.seed + place)
                processes.append(FORKS.Process(target=perform_all, args=storm))
                processes[-1].start()
            for process in processes:
                process.join()
        results = [json.loads((home / str(place) / "storm.json").read_text()) for place in range(options.beside)]
        counted = sum((Counter(counts) for counts, _ in results), Counter[str]())
        cut_short = [f"{each.name} ended with {each.exitcode}; see above" for each in processes if each.exitcode]
        wrong = [*cut_short, *(error for _, errors in results for error in errors), *judged(out)]
    for what, count in sorted(counted.items()):
        print(f"{count:6} {what}")
    for each in wrong[:20]:
        print(f"WRONG {each}")
    seconds = time.monotonic() - began
    print(f"{options.runs} runs, seed {options.seed}: {len(wrong)} wrong, in {seconds:.0f} s")
    return 1 if wrong else 0


def judged(out: Path) -> list[str]:
    """What is wrong with the recording: sessions that were not ended, and breaches of the law."""
    whole = out.with_suffix(".whole.jsonl")
    with out.open("rb") as lines, whole.open("wb") as kept:
        kept.writelines(line for line in lines if not _cut_off(json.loads(line)))
    recording = trace.read(whole)
    judgements = judge(recording).judgements.values()
    print(f"{len(recording.exchanges)} exchanges: {Counter(str(each.verdict) for each in judgements)}")
    for each in judgements:
        if each.verdict == "WARN":
            print(f"  WARN {each.requirement}, {len(each.findings)} times: {each.message}")
    breaches = [f"{each.requirement}: {each.message}" for each in judgements if each.verdict in ("FAIL", "ERROR")]
    return [*unended(recording), *breaches]


def _cut_off(line: dict[str, Any]) -> bool:
    """Whether it is of a request that a kill cut off, which proves nothing."""
    sent = line.get("request", {})
    return sent.get("method") == "POST" and sent.get("body") is None


if __name__ == "__main__":
    raise SystemExit(main())
