"""Kill runs of the reference harness with SIGKILL at random moments, resume them, and check how each ends.

Each run calls a tool twice, and each call must take effect only once. The tool kills each run and half of its
resumptions. It does not resume one run in ten, so that the next run has to end its session. All requests go through the
recorder to an embedded daemon. The exit status is 0 only if every run ended as an undisturbed run does or refused with
a reason, no call took effect twice, every session was ended, and the rules find no breach in the recording. Needs the
root of the repository in PYTHONPATH.
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
ABANDON_EVERY: Final = 10
"""Every tenth run is not resumed."""
HOOKS: Final = "/api/hooks/session-"
FORKS: Final = multiprocessing.get_context("fork")
"""A fork has imported the harness already."""


class Storm:
    """The runs of one agent, one after the other, with counts and errors."""

    def __init__(self, home: Path, environ: Mapping[str, str], seed: int) -> None:
        self._home = home
        self._environ = dict(environ)
        self._random = random.Random(seed)
        self._durations = [0.5]
        """Seconds of the last runs that were not killed."""
        self.counted: Counter[str] = Counter()
        self.wrong: list[str] = []

    def run(self, number: int) -> None:
        """Begin a run, kill it, resume it until it ends, and check it."""
        run, project, summary = f"run-{number}", self._home / "projects" / str(number), self._home / f"{number}.json"
        project.mkdir(parents=True)
        begun = {"cwd": project, "prompt": "Deploy.", "run_id": run, "session": f"session-{number}", "summary": summary}
        status = self._perform(begun, kill=True)
        while status is None and number % ABANDON_EVERY:
            # Half of the resumptions are killed too.
            status = self._perform({"resume": run, "summary": summary}, kill=self._random.random() < 0.5)
            if status == 2:
                reason = json.loads(summary.read_bytes())["error"]["message"].rpartition(": ")[2]
                self.counted[f"refused to be resumed: {reason}"] += 1
                # The kill came after the run's end, or before its beginning; then the run is begun again.
                status = 0 if reason == "the run is finished" else self._perform(begun, kill=False)
        if status is None:
            self.counted["runs that were not resumed"] += 1
        elif status == 0:
            self._check(number, project)
        else:
            self.wrong.append(f"{run}: exit status {status}: {summary.read_text()}")

    def end(self) -> None:
        """Perform one more run, which ends the sessions that kills have left open."""
        project = self._home / "projects" / "last"
        project.mkdir(parents=True)
        if self._perform({"cwd": project, "prompt": "Deploy."}, kill=False) != 0:
            self.wrong.append("the last run did not end")
        unended = (self._home / "state" / "open-sessions").glob("*.json")
        self.wrong += [f"a session was not ended: {path.read_text()}" for path in unended]

    def _perform(self, options: dict[str, Any], *, kill: bool) -> int | None:
        """Perform a run in a process, and return its exit status; None if it was killed."""
        began = time.monotonic()
        process = FORKS.Process(target=perform_and_exit, args=(options, self._environ))
        process.start()
        # Wait for the moment of the kill, or for the end of the run.
        process.join(self._random.uniform(0, 1.2 * mean(self._durations[-10:])) if kill else None)
        process.kill()
        process.join()
        killed = process.exitcode == -signal.SIGKILL
        self.counted["processes killed" if killed else "processes that ended by themselves"] += 1
        if not kill and process.exitcode == 0:
            self._durations.append(time.monotonic() - began)
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
            self.wrong.append(f"run-{number}: deployed to {deployed}, but the model received {result_of}")
        self.counted["runs that ended as an undisturbed run does"] += 1
        self.counted["tool calls of unknown outcome"] += len(unknown)
        if number % ABANDON_EVERY == 1 and self._perform({"resume": f"run-{number}"}, kill=False) != 2:
            self.wrong.append(f"run-{number}: is finished, but did not refuse to be resumed")


def perform_all(home: Path, environ: Mapping[str, str], numbers: range, seed: int) -> None:
    """Perform these runs, and write counts and errors to `storm.json`, even after an exception."""
    storm = Storm(home, environ, seed)
    try:
        for number in numbers:
            storm.run(number)
        storm.end()
    finally:
        (home / "storm.json").write_text(json.dumps([storm.counted, storm.wrong]))


def session_errors(recording: Any) -> Iterator[str]:
    """Yield the errors in the starts and ends of the sessions in the recording."""
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
    """Kill the runs, judge the recording, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1_000, help="how many runs to kill (default: 1000)")
    parser.add_argument("--beside", type=int, default=3, help="how many to kill at a time (default: 3)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of the moments (default: 1)")
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
                agent_home = home / str(place)
                agent_home.mkdir()
                own = {"SIGNET_AGENT_ID": f"atlas-{place}", "SIGNET_PATH": str(agent_home / "workspace")}
                own["SIGNET_HARNESS_STATE_DIR"] = str(agent_home / "state")
                numbers = range(place, options.runs, options.beside)
                storm = (agent_home, {**environ, **own}, numbers, options.seed + place)
                processes.append(FORKS.Process(target=perform_all, args=storm))
                processes[-1].start()
            for process in processes:
                process.join()
        results = [json.loads((home / str(place) / "storm.json").read_text()) for place in range(options.beside)]
        counted = sum((Counter(counts) for counts, _ in results), Counter[str]())
        cut_short = [f"{each.name} ended with {each.exitcode}; see above" for each in processes if each.exitcode]
        wrong = [*cut_short, *(error for _, errors in results for error in errors), *recording_errors(out)]
    for what, count in sorted(counted.items()):
        print(f"{count:6} {what}")
    for each in wrong[:20]:
        print(f"WRONG {each}")
    seconds = time.monotonic() - began
    print(f"{options.runs} runs, seed {options.seed}: {len(wrong)} wrong, in {seconds:.0f} s")
    return 1 if wrong else 0


def recording_errors(out: Path) -> list[str]:
    """The errors in the recording: sessions that were not ended, and requirements that were breached."""
    whole = out.with_suffix(".whole.jsonl")
    with out.open("rb") as lines, whole.open("wb") as kept:
        kept.writelines(line for line in lines if not _is_cut_off(json.loads(line)))
    recording = trace.read(whole)
    judgements = judge(recording).judgements.values()
    print(f"{len(recording.exchanges)} exchanges: {Counter(str(each.verdict) for each in judgements)}")
    for each in judgements:
        if each.verdict == "WARN":
            print(f"  WARN {each.requirement}, {len(each.findings)} times: {each.message}")
    breaches = [f"{each.requirement}: {each.message}" for each in judgements if each.verdict in ("FAIL", "ERROR")]
    return [*session_errors(recording), *breaches]


def _is_cut_off(line: dict[str, Any]) -> bool:
    """Whether a kill cut off the request of this line, which then proves nothing."""
    sent = line.get("request", {})
    return sent.get("method") == "POST" and sent.get("body") is None


if __name__ == "__main__":
    raise SystemExit(main())
