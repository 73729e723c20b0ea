"""Where a face differs from what the real program did, by the marks of a recording."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.targets.drift import drifts, update_face
from signet_conformance.targets.face import face_of_harness
from signet_conformance.targets.face_document import FaceDocument
from signet_conformance.trace import Trace
from tests.support.case_traces import build
from tests.support.command_line import Invoke, invoke
from tests.support.evidence import EVIDENCE

__all__ = ["invoke"]
Item = dict[str, Any]
FACE = json.loads(face_of_harness("claude-code").path.read_bytes())
VERSION = str(FACE["version"])


def mark(name: str, **data: Any) -> Item:
    """A mark."""
    return {"mark": name, "data": data}


def ran(event: str, members: Sequence[str] | None = None, **more: Any) -> Item:
    """A run of a hook as the face has it, but for what is given."""
    told = {"event": event, "members": list(FACE["events"][event] if members is None else members)}
    return mark(
        "observed",
        **{**told, "env": ["CLAUDE_PROJECT_DIR", "HOME"], "cwd": "/tmp/x/acme", "status": 0, "ms": 9.0, **more},
    )


def day(**other: Item) -> list[Item]:
    """A session with two prompts; `other` replaces the run of a hook."""
    runs = {
        "start": ran("SessionStart"),
        "first": ran("UserPromptSubmit"),
        "second": ran("UserPromptSubmit"),
        "end": ran("SessionEnd"),
    }
    runs.update(other)
    said = [mark("step", index=n, step="prompt", session="s1", text=f"Number {n}?", reply="Yes.") for n in (1, 2)]
    return [
        mark("loaded", ok=True, host="claude-code", release=VERSION, real=True),
        mark("step", index=0, step="start", session="s1", project="/workspace/src/acme"), runs["start"],
        said[0], runs["first"], said[1], runs["second"],
        mark("step", index=3, step="end", session="s1"), runs["end"],
    ]  # fmt: skip


def trace(folder: Path, items: Sequence[Item]) -> Trace:
    """The recording of these marks."""
    return build(folder / "run.jsonl", items)


def told(folder: Path, items: Sequence[Item], **members: Any) -> list[str]:
    """The differences between the face, with other members, and these marks."""
    face = FaceDocument.model_validate({**copy.deepcopy(FACE), **members})
    return [drift.words for drift in drifts(face, [trace(folder, items)])]


def test_a_program_that_does_what_the_face_says_shows_no_drift(tmp_path: Path) -> None:
    """The same events in order, with the same members, in the project's folder; what is not seen is not compared."""
    assert told(tmp_path, day()) == []


@pytest.mark.parametrize(
    ("step", "event"), [("compact", "PreCompact"), ("resume", "SessionEnd")], ids=["no compaction", "no conversation"]
)
def test_step_that_the_program_did_not_go_through_with_is_not_compared(step: str, event: str, tmp_path: Path) -> None:
    """It begins a compaction and finds too little, or ends at once where there is nothing to resume."""
    *before, step_of_end, end = day()
    begun = [mark("step", index=9, step=step, session="s1"), ran(event), mark("skipped", index=9, reason="as it says")]
    assert told(tmp_path, [*before, *begun, step_of_end, end]) == []


@pytest.mark.parametrize(
    ("ends", "differences"),
    [(1, []), (2, ["events after Stop: face: nothing; program: Stop"])],
    ids=["as the face", "another end"],
)
def test_the_call_that_looks_for_a_tool_which_is_not_offered_is_not_compared(
    ends: int, differences: Sequence[str], tmp_path: Path
) -> None:
    """Claude Code 2.1.332 runs the hooks of tools for it. What ends the turn is compared all the same."""
    *begin, first, _, _, step_of_end, end = day()
    asked = mark("step", index=2, step="tool", session="s1", tool="secret_exec")
    looked_up = [ran("PreToolUse"), ran("PostToolUse"), *[ran("Stop")] * ends]
    skipped = mark("skipped", index=2, reason="secret_exec is not offered to the model")
    begin[-1]["data"]["more"] = True
    assert told(tmp_path, [*begin, first, asked, *looked_up, skipped, step_of_end, end]) == differences


def without(event: str, *names: str) -> list[str]:
    """The members of an event but these."""
    return [name for name in FACE["events"][event] if name not in names]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"second": mark("remark", text="x")}, "events after UserPromptSubmit: face: UserPromptSubmit;"),
        ({"end": ran("UserPromptSubmit")}, "program: UserPromptSubmit"),
        (
            {"start": ran("SessionStart", without("SessionStart", "source"))},
            "members of SessionStart: face: source",
        ),
        ({"start": ran("SessionStart", [*FACE["events"]["SessionStart"], "branch"])}, "program: branch"),
        ({"first": ran("UserPromptSubmit", cwd="/root")}, "face: the project's, acme; program: /root"),
        (
            {
                "start": ran("SessionStart", env=["HOME"]),
                "first": ran("UserPromptSubmit", env=["HOME"]),
                "second": ran("UserPromptSubmit", env=["HOME"]),
                "end": ran("SessionEnd", env=["HOME"]),
            },
            "face: CLAUDE_PROJECT_DIR; program: not set",
        ),
        ({"end": ran("SessionEnd", ms=90_000.0)}, "longest run of a hook: face: 60 s; program: 90.0 s"),
    ],
)
def test_a_difference_is_told(other: Mapping[str, Item], words: str, tmp_path: Path) -> None:
    """Each kind of difference names its state in the face and in the program."""
    assert any(words in line for line in told(tmp_path, day(**other))), told(tmp_path, day(**other))


CODEX = EVIDENCE / "faces" / "codex-0.169.0-compaction.jsonl.gz"
"""Two turns, a compaction, a turn with tools, a compaction, a turn and an end."""


@pytest.mark.parametrize(
    ("told", "instead", "words"),
    [
        (
            '"occasion":"compact"',
            '"occasion":"startup"',
            "face: SessionStart compact;",
        ),
        (
            '"event":"SessionEnd"',
            '"event":"Stop"',
            "face: nothing; program: Stop other",
        ),
        ('"step":"compact"', '"step":"resume"', "program: PreCompact manual, PostCompact manual"),
    ],
)
def test_what_codex_fires_later_is_compared_with_its_occasion(
    told: str, instead: str, words: str, invoke: Invoke, tmp_path: Path
) -> None:
    """A start that comes with the next turn, an end that comes with the program's, and what a step never did."""
    lines = gzip.decompress(CODEX.read_bytes()).decode()
    (tmp_path / "run.jsonl").write_text(lines)
    assert invoke("face", "check", "codex", "run.jsonl").exit_code == 0
    (tmp_path / "run.jsonl").write_text(lines.replace(told, instead))
    drifted = invoke("face", "check", "codex", "run.jsonl")
    assert drifted.exit_code == 1
    assert words in " ".join(drifted.stdout.split())


def test_members_of_some_ways_of_running_are_no_drift(tmp_path: Path) -> None:
    """A member that an event of the face has only sometimes may be there or not."""
    first = ran("UserPromptSubmit", [*FACE["events"]["UserPromptSubmit"], "prompt_id"])
    second = ran("UserPromptSubmit", [*FACE["events"]["UserPromptSubmit"], "prompt_id"])
    assert told(tmp_path, day(first=first, second=second)) == []
    assert told(tmp_path, day(first=first, second=second), sometimes={}) != []


def test_variables_beyond_those_that_are_handed_on_are_drift(tmp_path: Path) -> None:
    """A face that names all variables is held to them."""
    assert told(tmp_path, day(), environment=["CLAUDE_PROJECT_DIR"], project_variables=[]) == []
    fired = {"start": "SessionStart", "first": "UserPromptSubmit", "second": "UserPromptSubmit", "end": "SessionEnd"}
    runs = {name: ran(event, env=["CLAUDE_PROJECT_DIR", "LANG"]) for name, event in fired.items()}
    (line,) = told(tmp_path, day(**runs), environment=["CLAUDE_PROJECT_DIR"], project_variables=[])
    assert line.endswith("program: LANG")


def test_a_variable_that_some_hooks_have_is_told_so(tmp_path: Path) -> None:
    """The program sets it, though not for each hook."""
    (line,) = told(tmp_path, day(first=ran("UserPromptSubmit", env=["HOME"])))
    assert line.endswith("face: CLAUDE_PROJECT_DIR; program: set for some hooks only")


def test_a_face_is_updated_from_a_recording(tmp_path: Path) -> None:
    """Members that were never sent are taken out, new ones added, the rest keeps its order; then there is no drift."""
    items = day(start=ran("SessionStart", [*without("SessionStart", "model"), "branch"]))
    made = update_face(FACE, [trace(tmp_path, items)], "9.0.0")
    assert made["version"] == "9.0.0"
    assert made["events"]["SessionStart"] == [*without("SessionStart", "model"), "branch"]
    assert list(drifts(FaceDocument.model_validate({**made, "sometimes": {}}), [trace(tmp_path, items)])) == []


def test_the_command_tells_drift_by_its_status(invoke: Invoke, tmp_path: Path) -> None:
    """0 without drift, 1 with, 3 where no hook ran, 2 for recordings of another program; update writes a face."""
    trace(tmp_path, day())
    assert invoke("face", "check", "claude-code", "run.jsonl").exit_code == 0
    trace(tmp_path, day(first=ran("UserPromptSubmit", cwd="/root")))
    drifted = invoke("face", "check", "claude-code", "run.jsonl")
    assert drifted.exit_code == 1
    unseen = "not compared, because no run shows them: PostCompact, PostToolUse, PreCompact, PreToolUse, Stop"
    assert unseen in " ".join(drifted.stdout.split())
    assert invoke("face", "check", "codex", "run.jsonl").exit_code == 2
    assert invoke("face", "update", "claude-code", "run.jsonl", "--output", "face.json").exit_code == 0
    assert json.loads((tmp_path / "face.json").read_text())["format"] == "signet-face/1"
    trace(tmp_path, [item for item in day() if item["mark"] != "observed"])
    assert invoke("face", "check", "claude-code", "run.jsonl").exit_code == 3


@pytest.mark.parametrize(("release", "status"), [(VERSION, 0), ("2.1.9", 2)], ids=["the face's", "another"])
def test_played_runs_are_compared_if_they_play_the_face(
    release: str, status: int, invoke: Invoke, tmp_path: Path
) -> None:
    """A target may play an older face than that of the release that was launched: its requests say nothing of it."""
    trace(tmp_path, day())
    asked = {"side": "model", "request": {"method": "POST", "path": "/v1/messages", "body": {"messages": []}}}
    loaded = mark("loaded", ok=True, host="claude-code", release=release)
    build(tmp_path / "played.jsonl", [loaded, asked], {"played": True})
    check = invoke("face", "check", "claude-code", "run.jsonl", "played.jsonl")
    assert check.exit_code == status
    assert ("--face claude-code-2.1 --report played" in " ".join(check.output.split())) is (status == 2)


@pytest.mark.parametrize(
    ("files", "remedy"),
    [
        (["run.jsonl"], "name the recordings of a played run"),
        (["run.jsonl", "played.jsonl"], "no scenario was performed in both; add --every-scenario to the real run"),
    ],
)
def test_why_the_requests_to_the_model_are_not_compared_is_told(
    files: list[str], remedy: str, invoke: Invoke, tmp_path: Path
) -> None:
    """No played run was named, or it performed other scenarios."""
    asked = {"side": "model", "request": {"method": "POST", "path": "/v1/messages", "body": {"messages": []}}}
    loaded = mark("loaded", ok=True, host="claude-code", release=VERSION)
    build(tmp_path / "run.jsonl", [{"mark": "scenario", "data": {"name": "working-day"}}, *day(), asked])
    build(tmp_path / "played.jsonl", [{"mark": "scenario", "data": {"name": "plain"}}, loaded, asked], {"played": True})
    said = " ".join(invoke("face", "check", "claude-code", *files).stdout.split())
    assert f"requests to the model not compared: {remedy}" in said
