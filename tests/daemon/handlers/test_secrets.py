"""Commands with secrets: jobs, redaction, no shell."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Kit

SECRET = "dummy-acme-9d2f"


def outcome(kit: Kit, command: str, **more: Any) -> dict[str, Any]:
    """The job of `command`, once it has ended."""
    kit.post("/api/secrets/ACME_TOKEN", {"value": SECRET})
    body = {"command": command, "secrets": {"ACME_TOKEN": "ACME_TOKEN"}, **more}
    answer = kit.post("/api/secrets/exec", body)
    assert answer.status_code == 202
    job: dict[str, Any] = answer.json()
    while job["status"] in ("queued", "running"):
        # The daemon's loop only runs while it is asked something: this lets it wait for the command.
        kit._runner.run(asyncio.sleep(0.01))
        job = kit.get(f"/api/secrets/exec/{job['id']}").json()
    return job


def test_value_is_redacted(kit: Kit) -> None:
    """A command has the value in its environment, its output never shows it."""
    job = outcome(kit, "printenv ACME_TOKEN")
    assert job["result"] == {"stdout": "[REDACTED]\n", "stderr": "", "code": 0}


def test_references_may_have_another_name(kit: Kit) -> None:
    """The variable's name and the secret's name are two things."""
    job = outcome(kit, "printenv MY_VAR", secrets={"MY_VAR": "local://ACME_TOKEN"})
    assert job["result"]["stdout"] == "[REDACTED]\n"


@pytest.mark.parametrize(
    "command", ["true; true", "echo $HOME", "echo `id`", "cat < /etc/hostname", "a | b", "echo a\\b"]
)
def test_shell_characters_are_refused_in_the_job(kit: Kit, command: str) -> None:
    """Nothing is run for a command with shell characters; the job tells why."""
    refused = {"stdout": "", "stderr": "command contains disallowed shell metacharacters", "code": 1}
    assert outcome(kit, command)["result"] == refused


def test_quotes_group_words(kit: Kit) -> None:
    """Quoted words are one argument, without their quotes."""
    assert outcome(kit, "printf %s-%s 'a b' \"c\"")["result"]["stdout"] == "a b-c"


@pytest.mark.parametrize(
    ("command", "secrets", "error"),
    [
        ("no-such-program", {"A": "ACME_TOKEN"}, 'Executable not found in $PATH: "no-such-program"'),
        ("true", {"A": "NO_SUCH_SECRET"}, "Secret 'NO_SUCH_SECRET' not found"),
        ("true", {"A": "no-name"}, "Invalid secret name 'no-name'. Use letters, digits, and underscores only."),
    ],
)
def test_failing_jobs(kit: Kit, command: str, secrets: dict[str, str], error: str) -> None:
    """Unknown programs and secrets fail in the job, not in the request."""
    job = outcome(kit, command, secrets=secrets)
    assert (job["status"], job["error"]) == ("failed", error)


def test_exit_code_and_stderr(kit: Kit) -> None:
    """The job tells the exit code and what was written to standard error."""
    result = outcome(kit, "ls /no/such/dir")["result"]
    assert result["code"] != 0
    assert "/no/such/dir" in result["stderr"]


def test_timeout_ends_the_command(kit: Kit) -> None:
    """A command that outlives its time is ended with code 124."""
    result = outcome(kit, "sleep 60", timeoutMs=1)["result"]
    assert (result["code"], result["timedOut"]) == (124, True)
    assert "timed out after 1000ms" in result["stderr"]


def test_running_commands_end_with_the_daemon(start: Callable[..., Kit]) -> None:
    """Closing the daemon ends its commands."""
    kit = start()
    kit.post("/api/secrets/A", {"value": "value"})
    job = kit.post("/api/secrets/exec", {"command": "sleep 600", "secrets": {"A": "A"}}).json()
    kit._runner.run(kit.app.daemon.secrets.close())
    ended = kit.app.daemon.secrets.job(job["id"])
    assert ended is not None
    assert ended.completed is not None


def test_four_jobs_run_at_once(kit: Kit) -> None:
    """The fifth job waits until one of four has ended."""
    kit.post("/api/secrets/A", {"value": "value"})
    body = {"command": "sleep 600", "secrets": {"A": "A"}}
    states = [kit.post("/api/secrets/exec", body).json() for _ in range(5)]
    assert [state["status"] for state in states] == ["running"] * 4 + ["queued"]
    assert "startedAt" not in states[4]


def test_output_is_limited(kit: Kit) -> None:
    """Of more than 1 MiB of output the beginning is kept."""
    stdout = outcome(kit, "seq 400000")["result"]["stdout"]
    assert stdout.endswith("\n[signet secret exec: stdout truncated]\n")
    assert len(stdout) < 1024 * 1024 + 100


def test_names_are_listed_without_values(kit: Kit) -> None:
    """The list, and the text injected at a start, hold names only."""
    kit.post("/api/secrets/ACME_TOKEN", {"value": SECRET})
    assert kit.get("/api/secrets").json() == {"secrets": ["ACME_TOKEN"], "provider": "local"}
    inject = kit.hook("session-start").json()["inject"]
    assert "- ACME_TOKEN" in inject
    assert SECRET not in inject
