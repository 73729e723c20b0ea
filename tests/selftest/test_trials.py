"""Facts about mutants as they are performed: real processes, a real recorder, an embedded daemon."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from signet_conformance.children.processes import LineProcess
from signet_conformance.selftest.matrix import grade
from signet_conformance.selftest.mutants import mutant
from signet_conformance.selftest.trials import in_host, perform, trials

PATIENCE_S = 180.0


@pytest.mark.longest
def test_mutants_are_killed_by_what_they_break(tmp_path: Path) -> None:
    """Two connectors at two contract versions and a daemon are broken, noticed, and nothing else is blamed."""
    wanted = [mutant(name) for name in ("never-starts", "captures-without-zone", "forgets-a-session", "waits-for-ever")]
    grades = [grade(performed, {}) for performed in perform(trials(wanted), tmp_path, workers=2)]
    assert {performed.trial.name: (list(performed.breached), list(performed.complaints)) for performed in grades} == {
        "reference-0-145-daemon-slow": ([], []),
        "reference-0-145-plain": ([], []),
        "reference-0-145-several-prompts": ([], []),
        "reference-0-205-plain": ([], []),
        "never-starts": (["SIG-START-004"], []),
        "captures-without-zone": (["SIG-END-011"], []),
        "forgets-a-session": (["SIG-DAEMON-011"], []),
        "waits-for-ever": (["SIG-FAIL-002"], []),
        "at-prompt-0-145-daemon-slow": ([], []),
        "at-prompt-0-145-plain": ([], []),
        "at-prompt-never-starts": (["SIG-START-004"], []),
        "at-prompt-waits-for-ever": (["SIG-FAIL-002"], []),
    }


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only /proc tells whose a connection is")
def test_what_a_host_sees_and_where_a_connector_calls_is_broken_too(tmp_path: Path) -> None:
    """A connector that does not load, throws, installs what is refused or calls another port is found out by its id."""
    names = ["cannot-be-loaded", "throws-what-its-host-catches", "installs-what-its-host-refuses"]
    names += ["registers-nothing", "names-a-tool-of-its-host", "listens-for-an-event-of-another-host"]
    names += ["listens-for-two-names-of-an-event", "registers-twice", "calls-the-default-port"]
    names.append("overwrites-another-tool-s-hooks")
    wanted = [trial for trial in trials([mutant(name) for name in names]) if trial.mutant and not trial.base]
    grades = {performed.trial.name: grade(performed, {}) for performed in perform(wanted, tmp_path, workers=1)}
    assert {name: (list(performed.breached), list(performed.complaints)) for name, performed in grades.items()} == {
        "cannot-be-loaded": (["SIG-LOAD-001"], []),
        "throws-what-its-host-catches": (["SIG-LOAD-001"], []),
        "installs-what-its-host-refuses": (["SIG-LOAD-002"], []),
        "registers-nothing": (["SIG-LOAD-001"], []),
        "names-a-tool-of-its-host": (["SIG-LOAD-002"], []),
        "listens-for-an-event-of-another-host": (["SIG-LOAD-002"], []),
        "listens-for-two-names-of-an-event": (["SIG-LOAD-002"], []),
        "registers-twice": (["SIG-LOAD-002"], []),
        "calls-the-default-port": (["SIG-LOAD-003"], []),
        "overwrites-another-tool-s-hooks": (["SIG-LOAD-005"], []),
    }


def test_a_trial_that_cannot_be_recorded_is_told(tmp_path: Path) -> None:
    """Where no trace can be written each trial says so, and the others are still tried."""
    missing = tmp_path / "no-such-folder"
    performances = list(perform(trials([mutant("never-starts")]), missing, workers=1))
    assert all(performed.judged is None and performed.error is not None for performed in performances)


@pytest.mark.parametrize("module", ["harness", "daemon"])
def test_an_unknown_mutant_ends_a_process_with_a_message(module: str) -> None:
    """Status 2, what was asked for, and where the mutants stand; no traceback."""
    done = subprocess.run(
        [sys.executable, "-m", f"signet_conformance.selftest.{module}", "--mutant", "nobody"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 2
    assert "there is no mutant" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_mutant_and_a_variant_exclude_each_other() -> None:
    """Neither is passed over without a word."""
    words = ["--mutant", "ignores-the-bypass", "--variant", "shouts-its-headers"]
    done = subprocess.run(
        [sys.executable, "-m", "signet_conformance.selftest.harness", *words],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 2
    assert "not allowed with" in done.stderr


def test_a_broken_harness_speaks_the_driver_protocol() -> None:
    """The mutant is launched like any connector and greets like the reference harness."""
    command = [sys.executable, "-m", "signet_conformance.selftest.harness", "--mutant", "ignores-the-bypass"]
    with LineProcess("a mutant", command, env={"SIGNET_BYPASS": "1"}) as process:
        answer = process.ask({"id": 1, "op": "hello"}, PATIENCE_S)
    assert answer["result"]["harness"] == "reference"
    assert answer["result"]["bypassed"] is False


def test_a_daemon_is_broken_and_mended() -> None:
    """A line breaks the daemon as a mutant says, another mends it; an unknown mutant is refused."""
    import httpx

    with LineProcess("a daemon", [sys.executable, "-m", "signet_conformance.selftest.daemon"]) as process:
        url = process.receive(PATIENCE_S)["url"]
        with httpx.Client(base_url=url, trust_env=False) as client:
            seen = []
            for name in (None, "hides-its-version", "nobody", None):
                answer = process.ask({"mutant": name}, PATIENCE_S)
                seen.append((answer["ok"], "version" in json.loads(client.get("/health").content)))
    assert seen == [(True, True), (True, False), (False, False), (True, True)]


def test_a_mutant_is_tried_in_the_host_that_it_names() -> None:
    """Its steps have what the face says of them, and so has the control beside it; other trials have no host."""
    silent = mutant("hides-a-clear-that-no-end-tells")
    tried = [trial for trial in trials([silent]) if trial.base is None]
    assert [(trial.is_control, trial.face) for trial in tried] == [(True, silent.face), (False, silent.face)]
    played = in_host(tried[0].scenario, silent.face).to_json()["steps"]
    marked = {step["step"] for step in played if step.get("anew") and step.get("end_untold")}
    assert marked == {"clear"}
    assert in_host(tried[0].scenario, None) is tried[0].scenario
    assert {trial.face for trial in trials([mutant("never-starts")])} == {None}
