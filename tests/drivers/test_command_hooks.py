"""Hooks that are commands, in the hosts that run them: Claude Code, Codex and those like them."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from signet_conformance import engine, trace
from signet_conformance.finding import Verdict
from signet_conformance.reports.json_document import trace_entry
from signet_conformance.reports.remarks import remarks
from signet_conformance.trace.marks import SkippedMark, marks_of
from signet_conformance.trace.recordings import recordings_in

from .conftest import FIXTURES, PROMPT, START, Broken, Made, Recorded, greeted, performed

PROMPT_TEXT = {"SIG-PROMPT-001": Verdict.FAIL, "SIG-PROMPT-002": Verdict.FAIL}

HOOKS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
    "SessionEnd": "session-end",
}


def settings(folder: Path, prompt_timeout_s: float = 30) -> str:
    """A Claude Code settings file whose hooks run the fixture."""
    program = shlex.join([sys.executable, str(FIXTURES / "hook.py")])
    timeouts = {"UserPromptSubmit": prompt_timeout_s}
    hooks = {
        event: [{"hooks": [{"type": "command", "command": f"{program} {operation} claude-code", **more}]}]
        for event, operation in HOOKS.items()
        for more in ({"timeout": timeouts.get(event, 30)},)
    }
    path = folder / "settings.json"
    path.write_text(json.dumps({"hooks": hooks}))
    return str(path)


@pytest.mark.parametrize(("harness", "is_told"), [("muse-code", True), ("claude-code", False)])
def test_hooks_that_are_given_no_address(harness: str, is_told: bool, made: Made, tmp_path: Path) -> None:
    """A given file of hooks cannot learn the daemon's address where the harness clears the environment."""
    target = made(harness, config=settings(tmp_path), capabilities=["session-start"])
    about, _ = greeted(target, tmp_path / "home", [])
    assert any("no SIGNET_DAEMON_URL" in words for words in about["unheard"]) is is_told


@pytest.mark.parametrize("mode", ["conforming", "misnames"])
def test_command_hooks(mode: str, made: Made, broken: Broken, tmp_path: Path) -> None:
    """Hooks are run with the harness's JSON; one that sends the prompt under a wrong name is found out."""
    target = made("claude-code", mode=mode, config=settings(tmp_path), capabilities=["session-start"])
    breached = broken(target, ("plain", "two-tasks"))
    assert breached == ({} if mode == "conforming" else PROMPT_TEXT)


@pytest.mark.parametrize(
    ("mode", "verdict", "more"),
    [("conforming", Verdict.PASS, ""), ("mute", Verdict.WARN, ", as the kit plays claude-code 2.1.197")],
)
def test_the_played_host_shows_what_reaches_its_model(
    mode: str, verdict: Verdict, more: str, made: Made, recorded: Recorded, tmp_path: Path
) -> None:
    """What a hook prints is before the model in the turn; one that prints nothing is found out, apart from the rest."""
    target = made("claude-code", mode=mode, config=settings(tmp_path), capabilities=["session-start"])
    (plain,) = map(trace.read, recorded(target, ["plain"]))
    judged = engine.judge(plain)
    assert {judged.harness[f"SIG-MODEL-00{number}"].verdict for number in (1, 2)} == {verdict}
    assert judged.harness["SIG-MODEL-001"].message.endswith(more)
    assert Verdict.FAIL not in judged.verdicts.values()


def test_hooks_are_told_their_session_s_agent_where_a_user_tells_it(made: Made, broken: Broken, tmp_path: Path) -> None:
    """Each session's hooks find its own agent in SIGNET_AGENT_ID; hooks that read none of it run as the default one."""
    told = made("claude-code", config=settings(tmp_path), capabilities=["session-start"])
    assert told.declared.agents == ("atlas-agent", "Beacon-Agent")
    assert broken(told, ["other-agent"]) == {}


def test_hooks_that_read_no_agent_are_found_out(made: Made, broken: Broken, tmp_path: Path) -> None:
    """What was declared and given, and is not sent, breaks SIG-AGENT-002."""
    deaf = made("claude-code", mode="deaf", config=settings(tmp_path), capabilities=["session-start"])
    assert broken(deaf, ["plain"]) == {"SIG-AGENT-002": Verdict.FAIL}


@pytest.mark.parametrize("mode", ["latin-1", "pieces"])
def test_hooks_that_misread_characters_are_found_out(mode: str, made: Made, broken: Broken, tmp_path: Path) -> None:
    """Harnesses write characters as they are, not escaped: who does not read UTF-8, or in pieces, submits others."""
    target = made("claude-code", mode=mode, config=settings(tmp_path), capabilities=["session-start"])
    assert broken(target, ["after-compaction"]) == {"SIG-PROMPT-012": Verdict.FAIL}


def test_text_where_codex_reads_json_is_found_out(made: Made, recorded: Recorded, tmp_path: Path) -> None:
    """What the daemon gives begins with a bracket: printed as it is, Codex takes it for broken JSON and drops it."""
    target = made("codex", config=settings(tmp_path), capabilities=["session-start"])
    (plain,) = map(trace.read, recorded(target, ["plain"]))
    judged = engine.judge(plain)
    finding = judged.judgements["SIG-LOAD-002"].findings[0]
    assert finding.message.startswith(
        "codex 0.169.0 does not accept the output of SessionStart: hook returned invalid session start JSON output"
    )
    assert judged.harness["SIG-MODEL-001"].verdict is Verdict.WARN


def test_hooks_in_the_form_of_another_host_are_found_out(made: Made, recorded: Recorded, tmp_path: Path) -> None:
    """Codex of the spring of 2026 passes over members that it does not know: of such a file no hook is ever run."""
    path = tmp_path / "hooks.json"
    entry = {"handlers": [{"command": ["signet", "hook", "session-start"], "timeout": 10}]}
    path.write_text(json.dumps({"_signet": True, "sessionStart": [entry]}))
    target = made("codex", config=str(path), capabilities=["session-start"], face="codex-0.124")
    (plain,) = map(trace.read, recorded(target, ["plain"]))
    (finding,) = engine.judge(plain).judgements["SIG-LOAD-002"].findings
    words = "no hook in it has a form that the harness reads; its top-level members are _signet, sessionStart"
    assert finding.message == f"codex 0.124.0 does not accept hooks.json: {words}"


def test_event_of_another_host_is_found_out(made: Made, recorded: Recorded, tmp_path: Path) -> None:
    """A hook under it is never run: what it is for never reaches the daemon."""
    path = Path(settings(tmp_path))
    path.write_text(path.read_text().replace("SessionEnd", "SessionClosed"))
    (plain,) = map(trace.read, recorded(made("claude-code", config=str(path), capabilities=["session-end"]), ["plain"]))
    finding = engine.judge(plain).judgements["SIG-LOAD-002"].findings[0]
    assert finding.message == "claude-code 2.1.197 knows no event SessionClosed: the daemon never got session-end"


def test_remarks_reach_the_recording(made: Made, recorded: Recorded, tmp_path: Path) -> None:
    """What is off about the installed hooks stands in each recording once, and in the report of its trace."""
    declared = ["session-start", "user-prompt-submit", "session-end", "pre-compaction"]
    target = made("claude-code", config=settings(tmp_path), capabilities=declared)
    (plain,) = map(trace.read, recorded(target, ["plain"]))
    taken = "claude-code 2.1.197 took 3 handlers"
    expected = [taken, "no hook for PreCompact, though pre-compaction is declared"]
    assert list(remarks([plain, plain])) == expected
    assert trace_entry(engine.judge(plain))["remarks"] == expected


def notes(folder: Path) -> list[str]:
    """The notes on the recordings of a run, without the line on what the harness took."""
    taken, *told = remarks(trace.read(path) for path in recordings_in(folder))
    assert " took " in taken
    return told


def model_marks(folder: Path) -> int:
    """How often the model was called in a run."""
    return sum(mark.name == "model" for path in recordings_in(folder) for mark in trace.read(path).marks)


def test_hook_that_blocks_when_the_daemon_is_away(made: Made, broken: Broken, tmp_path: Path) -> None:
    """It stops the user's work with the daemon: a breach, and a note that says when."""
    target = made("claude-code", mode="blocks-when-away", config=settings(tmp_path), capabilities=["session-start"])
    breached = broken(target, ("plain", "daemon-refuses", "daemon-resets"))
    assert breached == {"SIG-FAIL-001": Verdict.FAIL}
    blocked = "UserPromptSubmit: ended with status 2 and blocked the user's turn, in 5 steps of 2 scenarios"
    where = "only while a fault was on; the first: daemon-refuses, step 3 prompt: memory is away"
    assert notes(tmp_path / "traces") == [f"{blocked}, {where}"]


def test_hook_that_always_blocks(made: Made, broken: Broken, tmp_path: Path) -> None:
    """A handler that takes every turn away is a breach, and the note says that the user never gets one."""
    target = made("claude-code", mode="blocks", config=settings(tmp_path), capabilities=["session-start"])
    assert broken(target, ("plain",)) == {"SIG-LOAD-001": Verdict.FAIL}
    assert model_marks(tmp_path / "traces") == 0
    (note,) = notes(tmp_path / "traces")
    assert note.startswith(
        "UserPromptSubmit: ended with status 2 and blocked the user's turn, in 1 step of 1 scenario;"
    )


def test_timeouts_of_the_settings_are_told(made: Made, tmp_path: Path) -> None:
    """What the installed settings give the hooks of a start and of a prompt stands in the answer to hello."""
    target = made("claude-code", config=settings(tmp_path, 4), capabilities=["session-start"])
    about, _ = greeted(target, tmp_path / "home", [])
    assert about["timeouts_s"] == {"start": 30.0, "prompt": 4.0}


def test_hook_that_hangs(made: Made, broken: Broken, tmp_path: Path) -> None:
    """The harness goes on without it, so it blocks nothing; the note says how long the user waits."""
    target = made("claude-code", mode="hangs", config=settings(tmp_path, 1), capabilities=["session-start"])
    assert broken(target, ("daemon-refuses",)) == {}
    (note,) = notes(tmp_path / "traces")
    assert re.match(r"UserPromptSubmit: gave no answer within \d+\.\d s, ", note)
    assert "in 7 steps of 1 scenario, also without a fault; the first: daemon-refuses, step 1 prompt" in note


def test_hook_that_makes_the_user_wait(made: Made, broken: Broken, tmp_path: Path) -> None:
    """Where the harness has patience the user has to have it too: the target's own bound is what a note goes by."""
    bounds = {"start": 15.0, "prompt": 0.2}
    target = made("claude-code", mode="dawdles", config=settings(tmp_path), capabilities=["session-start"])
    target = replace(target, declared=structs.replace(target.declared, bounds_s=bounds))
    assert broken(target, ("plain",)) == {}
    (note,) = notes(tmp_path / "traces")
    assert re.match(r"UserPromptSubmit: made the user wait \d+\.\d s, in 1 step of 1 scenario; ", note)


def test_what_a_failing_hook_says_is_redacted(made: Made, broken: Broken, tmp_path: Path) -> None:
    """A token on the standard error of a hook reaches no recording."""
    target = made("claude-code", mode="fails", config=settings(tmp_path), capabilities=["session-start"])
    broken(target, ("plain",))
    assert b"sig_sk_0123" not in (tmp_path / "traces" / "plain.jsonl").read_bytes()
    (note,) = notes(tmp_path / "traces")
    assert "failed with status 1" in note
    assert "TypeError: refused token <redacted:" in note


def test_blocked_prompt_never_reaches_the_model(made: Made, tmp_path: Path) -> None:
    """Neither does what the turn would have brought: the model is not called, and so no tool; the next step goes on."""
    target = made("claude-code", mode="blocks", config=settings(tmp_path))
    tool = {"step": "tool", "session": "s1", "tool": "memory_search", "arguments": {"query": "x"}}
    end = {"step": "end", "session": "s1"}
    steps = [START, {**PROMPT, "more": True}, tool, end]
    _, turn, used, ended = performed(target, tmp_path / "home", steps)
    assert (turn["turn"], turn["hooks"][0]["blocked"], turn["injected"]) == (False, True, "")
    assert "blocked the prompt" in used["skipped"]
    assert [run["event"] for run in ended["hooks"]] == ["SessionEnd"]


def test_session_in_which_nothing_was_said_cannot_be_resumed(made: Made, tmp_path: Path) -> None:
    """Claude Code keeps nothing of it: no hook runs, and what was to follow in it is skipped too."""
    target = made("claude-code", config=settings(tmp_path))
    end, resume = {"step": "end", "session": "s1"}, {"step": "resume", "session": "s1"}
    *_, resumed, turn, ended = performed(target, tmp_path / "unused", [START, end, resume, PROMPT, end])
    assert ["cannot be resumed" in each["skipped"] for each in (resumed, turn, ended)] == [True] * 3
    *_, resumed, turn = performed(target, tmp_path / "used", [START, PROMPT, end, resume, PROMPT])
    assert [run["event"] for run in (*resumed["hooks"], *turn["hooks"])] == ["SessionStart", "UserPromptSubmit"]


def test_a_compaction_that_never_began_does_not_end(made: Made, tmp_path: Path) -> None:
    """Where nothing was said no hook hears of a summary either, or it would tell the daemon one that no harness has."""
    path = tmp_path / "hooks.json"
    path.write_text(json.dumps({"hooks": {"PostCompact": [{"hooks": [{"type": "command", "command": ":"}]}]}}))
    target = made("claude-code", config=str(path), capabilities=["compaction-complete"])
    begin = {"step": "pre_compaction", "session": "s1"}
    end = {"step": "compaction_complete", "session": "s1", "summary": "Orders become invoices."}
    _, _, unbegun, _, _, ended, again = performed(
        target, tmp_path / "home", [START, begin, end, PROMPT, begin, end, end]
    )
    assert [each["skipped"] for each in (unbegun, again)] == ["no compaction is under way"] * 2
    assert [run["event"] for run in ended["hooks"]] == ["PostCompact"]


@pytest.mark.parametrize("name", ["claude-code", "codex", "kimi"])
def test_hooks_for_compactions_that_the_user_asked_for_do_not_run_at_others(
    name: str, made: Made, tmp_path: Path
) -> None:
    """A matcher tells the two apart: the harness's own compaction has an occasion of its own."""
    hook = {"matcher": "manual", "hooks": [{"type": "command", "command": ":"}]}
    path = tmp_path / "hooks.json"
    path.write_text(json.dumps({"hooks": {"PreCompact": [hook], "PostCompact": [hook]}}))
    target = made(name, config=str(path), capabilities=["pre-compaction"])
    asked = {"step": "compact", "session": "s1", "summary": "Orders become invoices."}
    steps = [START, PROMPT, asked, PROMPT, {**asked, "by_itself": True}]
    _, _, manual, _, automatic = performed(target, tmp_path / "home", steps)
    assert [run["event"] for run in manual["hooks"]] == ["PreCompact", "PostCompact"]
    assert automatic["hooks"] == []


@pytest.mark.parametrize(
    ("name", "hook", "found"),
    [
        ("claude-code", "UserPromptSubmit", {"type": "user", "isCompactSummary": True}),
        ("codex", "PostCompact", {"type": "compacted"}),
    ],
)
def test_the_transcript_holds_the_summary_of_a_compaction(
    name: str, hook: str, found: Mapping[str, Any], made: Made, tmp_path: Path
) -> None:
    """Codex tells its hooks no summary, so that they read it there; Claude Code writes it when its hooks have run."""
    kept = tmp_path / "kept.jsonl"
    script = f"""import json, shutil, sys; shutil.copy(json.load(sys.stdin)["transcript_path"], {str(kept)!r})"""
    command = shlex.join([sys.executable, "-c", script])
    path = tmp_path / "hooks.json"
    path.write_text(json.dumps({"hooks": {hook: [{"hooks": [{"type": "command", "command": command}]}]}}))
    target = made(name, config=str(path), capabilities=["compaction-complete"])
    begin = {"step": "pre_compaction", "session": "s1"}
    end = {"step": "compaction_complete", "session": "s1", "summary": "Orders become invoices."}
    performed(target, tmp_path / "home", [START, PROMPT, begin, end, *([PROMPT] if name == "claude-code" else [])])
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    (line,) = [line for line in lines if found.items() <= line.items()]
    assert "Orders become invoices." in json.dumps(line)


CLAUDE_BLOCKS = [
    ("user", ["image"]),
    ("user", ["text"]),
    *(("assistant", [kind]) for kind in ("thinking", "redacted_thinking", "text")),
]
CODEX_BLOCKS = [("user", ["input_text", "input_image", "input_text", "input_text"]), ("assistant", ["output_text"])]


@pytest.mark.parametrize(("name", "expected"), [("claude-code", CLAUDE_BLOCKS), ("codex", CODEX_BLOCKS)])
def test_a_prompt_of_an_image_alone_has_no_text(
    name: str, expected: list[tuple[str, list[str]]], made: Made, tmp_path: Path
) -> None:
    """The image is in the transcript, where Claude Code adds a message on where it is kept; no file is attached."""
    kept = tmp_path / "kept.jsonl"
    script = f"""import json, shutil, sys; d = json.load(sys.stdin); print("told", repr(d.get("prompt")))
shutil.copy(d["transcript_path"], {str(kept)!r}) if d["hook_event_name"] == "Stop" else None"""
    hook = [{"hooks": [{"type": "command", "command": shlex.join([sys.executable, "-c", script])}]}]
    path = tmp_path / "hooks.json"
    path.write_text(json.dumps({"hooks": {"UserPromptSubmit": hook, "Stop": hook}}))
    target = made(name, config=str(path), capabilities=["user-prompt-submit"])
    image, file = ({**PROMPT, "text": "", "attached": [kind]} for kind in ("image", "file"))
    about, (_, shown, skipped) = greeted(target, tmp_path / "home", [START, image, file])
    assert "attached_prompt" in about["steps"]
    assert shown["hooks"][0]["stdout"].strip() == "told ''"
    assert "not known to attach file" in skipped["skipped"]
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    said = [message for line in lines if (message := line.get("message") or line["payload"]).get("role")]
    assert [(message["role"], [part["type"] for part in message["content"]]) for message in said] == expected


def test_conforming_hooks_are_not_remarked_on(made: Made, broken: Broken, tmp_path: Path) -> None:
    """A connector that fails open has nothing to note, faults or not: every turn takes place."""
    target = made("claude-code", config=settings(tmp_path), capabilities=["session-start"])
    assert broken(target, ("plain", "daemon-refuses", "daemon-500")) == {}
    assert model_marks(tmp_path / "traces") == 16
    assert notes(tmp_path / "traces") == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"sessionStart": [{"hooks": [{"command": ["signet", "hook"]}]}]}', "unknown field `sessionStart`"),
        ('{"hooks": ', "is not JSON"),
    ],
)
def test_a_file_that_codex_cannot_parse_is_a_finding(
    text: str, words: str, made: Made, recorded: Recorded, tmp_path: Path
) -> None:
    """No hook runs, the scenario is performed to its end, and SIG-LOAD-002 tells why."""
    (tmp_path / "hooks.json").write_text(text)
    target = made("codex", config=str(tmp_path / "hooks.json"), capabilities=["session-start"])
    (plain,) = map(trace.read, recorded(target, ["plain"]))
    judged = engine.judge(plain).judgements["SIG-LOAD-002"]
    assert judged.verdict is Verdict.FAIL
    assert words in str(judged.findings[0].message)


def test_a_tool_that_settings_switch_off_is_skipped_for_that_reason(
    made: Made, recorded: Recorded, runtime: str, tmp_path: Path
) -> None:
    """It is the installer's doing, and no lack of the memory server's."""
    server = json.dumps([str(FIXTURES / "mcp_server.py")])
    settings = f"[mcp_servers.signet]\ncommand = {json.dumps(sys.executable)}\nargs = {server}\n"
    settings += 'disabled_tools = ["memory_store"]\nenv = {SIGNET_AGENT_ID = "default"}\n'
    module = tmp_path / "installer.mjs"
    module.write_text(
        "import { mkdirSync, writeFileSync } from 'node:fs';\n"
        "const folder = `${process.env.HOME}/.codex`;\n"
        "export class Connector {\n"
        "  async install() {\n"
        "    mkdirSync(folder, { recursive: true });\n"
        "    writeFileSync(`${folder}/hooks.json`, '{\"hooks\": {}}');\n"
        f"    writeFileSync(`${{folder}}/config.toml`, {json.dumps(settings)});\n"
        "  }\n"
        "}\n"
    )
    target = made("codex", module=str(module), runtime=[runtime], capabilities=["memory-recall"])
    (path,) = recorded(target, ["tools"])
    reasons = [mark.reason for mark in marks_of(trace.read(path), SkippedMark)]
    assert reasons[0] == "config.toml keeps memory_store from the model"
    assert not any("memory_search" in str(reason) for reason in reasons)


def plain_list(folder: Path) -> str:
    """A Kimi configuration whose hooks run the fixture: a plain list of them, in TOML."""
    program = shlex.join([sys.executable, str(FIXTURES / "hook.py")])
    lines = []
    for event, operation in HOOKS.items():
        command = json.dumps(f"{program} {operation} kimi")
        lines += ["[[hooks]]", f'event = "{event}"', f"command = {command}", "timeout = 30"]
    path = folder / "config.toml"
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize("mode", ["conforming", "misnames"])
def test_plain_list_of_hooks(mode: str, made: Made, broken: Broken, tmp_path: Path) -> None:
    """Kimi's hooks stand in a plain list; one that sends the prompt under a wrong name is found out."""
    target = made("kimi", mode=mode, config=plain_list(tmp_path), capabilities=["session-start"])
    assert broken(target, ("plain", "resume")) == ({} if mode == "conforming" else PROMPT_TEXT)


@pytest.mark.parametrize(
    ("mode", "runtime"), [("conforming", "node"), ("conforming", "bun"), ("misnames", "node")], indirect=["runtime"]
)
def test_cleared_environment(mode: str, runtime: str, made: Made, broken: Broken) -> None:
    """Muse Code's hooks inherit nothing, so what the installer wrote into the command is all that they know."""
    hook = shlex.join([sys.executable, str(FIXTURES / "hook.py")])
    module = str(FIXTURES / "hooks_installer.mjs")
    target = made("muse-code", mode=mode, module=module, runtime=runtime, capabilities=["session-start"])
    target = replace(target, env={**target.env, "FIXTURE_HOOK": hook})
    assert broken(target, ("plain", "two-tasks")) == ({} if mode == "conforming" else PROMPT_TEXT)


def test_a_hook_is_told_of_a_tool_before_it_is_called(runtime: str, made: Made, recorded: Recorded) -> None:
    """Which is where connectors from 0.183 on ask for notifications."""
    given = {
        "FIXTURE_HOOK": shlex.join([sys.executable, str(FIXTURES / "hook.py")]),
        "FIXTURE_SERVER": json.dumps([sys.executable, str(FIXTURES / "mcp_server.py")]),
    }
    target = made("muse-code", module=str(FIXTURES / "hooks_installer.mjs"), runtime=runtime)
    (tools,) = map(trace.read, recorded(replace(target, env={**target.env, **given}), ["feedback"]))
    paths = [call.request.path for call in tools.exchanges]
    asked = paths.index("/api/hooks/notifications")
    assert paths[asked + 1 :].index("/api/memory/recall") == 0
    assert tools.exchanges[asked].request.body.json["hook"] == "PreToolUse"


def test_a_harness_that_names_events_and_members_otherwise(made: Made, tmp_path: Path) -> None:
    """A face says under which names of its own; no hook is missed because other harnesses have other events."""
    face = {
        "format": "signet-face/1",
        "harness": "moss",
        "version": "1",
        "checked": "against nothing",
        "settings": ".moss.json",
        "timeout_unit_s": 1,
        "default_timeout_s": 30,
        "constants": {},
        "matchers": {},
        "mcp": {"file": ".moss-mcp.json", "members": ["servers", "signet"]},
        "names": {"conversation": "session_id", "summaryText": "compact_summary", "said": "prompt"},
        "events": {
            "Begin": ["conversation", "cwd"],
            "Ask": ["conversation", "said"],
            "Short": ["summaryText", "words"],
        },
        "steps": {
            "start": [{"event": "Begin"}],
            "prompt": [{"event": "Ask"}, {"model": True}],
            "compact": [{"model": True}, {"event": "Short"}],
        },
        "turn_end": [],
    }
    (tmp_path / "moss.json").write_text(json.dumps(face))
    hooks = {
        event: [{"hooks": [{"type": "command", "command": "echo told; cat"}]}] for event in ("Begin", "Ask", "Short")
    }
    (tmp_path / "hooks.json").write_text(json.dumps({"hooks": hooks}))
    declared = ["session-start", "user-prompt-submit", "session-end", "pre-compaction"]
    target = made(
        "claude-code", config=str(tmp_path / "hooks.json"), face=str(tmp_path / "moss.json"), capabilities=declared
    )
    compact = {"step": "compact", "session": "s1", "summary": "Orders become invoices."}
    about, (start, prompt, compacted) = greeted(target, tmp_path / "home", [START, PROMPT, compact])
    assert about["unheard"] == []
    assert about["remarks"] == ["Short: hooks do not get words: the face has no value for it under names or constants"]
    told = [json.loads(each["injected"].splitlines()[1]) for each in (start, prompt, compacted)]
    assert told[0]["conversation"] == start["key"]
    assert told[1:] == [
        {"conversation": start["key"], "said": PROMPT["text"]},
        {"summaryText": "Orders become invoices."},
    ]
