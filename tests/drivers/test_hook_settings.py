"""Files of hooks as a harness reads them: what it takes, what it refuses and in which words."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from signet_conformance.drivers.hosts.hook_settings import Hook, HookFile, oddities_of, read_hook_file
from signet_conformance.targets.face import FOLDER
from tests.support.evidence import EVIDENCE

HOOK = {"type": "command", "command": "signet hook session-start -H codex", "timeout": 20}
CODEX = [json.loads(line) for line in (EVIDENCE / "faces" / "codex-0.169.0-hook-files.jsonl").read_text().splitlines()]


def face(name: str) -> dict[str, Any]:
    """A face of the kit."""
    data: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_bytes())
    return data


def read(name: str, text: str, folder: Path, file: str = "hooks.json") -> HookFile:
    """What the harness reads in a file of hooks."""
    (folder / file).write_text(text)
    return read_hook_file(folder / file, face(name))


@pytest.mark.parametrize("row", CODEX, ids=[str(row["file"])[:60] for row in CODEX])
def test_codex_takes_and_refuses_the_files_that_the_real_one_does(row: dict[str, Any], tmp_path: Path) -> None:
    """Codex 0.169.0 said of each file whether it parses, and which hooks it has."""
    file = read("codex-0.169", row["file"], tmp_path)
    assert (file.refusal is not None) == any("failed to parse" in words for words in row["warnings"]), file.refusal
    if not row["warnings"]:
        known = [event for event in file.hooks if event in face("codex-0.169")["events"]]
        assert [event.lower() for event in known] == [str(event).lower() for event in row["hooks"]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"_signet": True, "hooks": {}}, "unknown field `_signet`"),
        ({"sessionStart": [{"hooks": [HOOK]}]}, "unknown field `sessionStart`"),
        ({"hooks": {"Stop": "odd"}}, '/hooks/Stop: "odd" is not of type "array"'),
    ],
)
def test_a_refusal_names_what_is_wrong(data: dict[str, Any], words: str, tmp_path: Path) -> None:
    """An unknown member in Codex's own words, another wrong value with its place."""
    assert read("codex-0.169", json.dumps(data), tmp_path).refusal == words


def test_a_file_that_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    """Python reads more levels than the validator of schemas does."""
    assert (
        read("codex-0.169", '{"hooks": ' + "[" * 600 + "]" * 600 + "}", tmp_path).refusal == "Recursion limit reached"
    )


@pytest.mark.parametrize(
    ("file", "given", "timeout_s"),
    [
        ("settings.json", "1" + "0" * 400, sys.float_info.max),
        ("config.toml", "inf", sys.float_info.max),
        ("config.toml", "nan", 60.0),
    ],
    ids=["too large", "endless", "no number"],
)
def test_a_timeout_is_a_finite_number(file: str, given: str, timeout_s: float, tmp_path: Path) -> None:
    """Whatever an installer writes, the host can wait for it and report it as JSON."""
    texts = {
        "settings.json": f'{{"hooks": [{{"event": "Stop", "command": "x", "timeout": {given}}}]}}',
        "config.toml": f"[[hooks]]\nevent = 'Stop'\ncommand = 'x'\ntimeout = {given}",
    }
    (tmp_path / file).write_text(texts[file])
    (hook,) = read_hook_file(tmp_path / file, {"timeout_unit_s": 1, "default_timeout_s": 60}).hooks["Stop"]
    assert hook.timeout_s == timeout_s


def test_harness_that_is_not_known_to_mind_takes_members_of_others(tmp_path: Path) -> None:
    """Claude Code was never seen to refuse a file for a member that it does not know."""
    assert read("claude-code-2.1", json.dumps({"_signet": True, "hooks": {}}), tmp_path).refusal is None


@pytest.mark.parametrize(
    ("name", "file", "text", "words"),
    [
        ("claude-code-2.1", "settings.json", '{"hooks": {', "is not JSON: "),
        ("claude-code-2.1", "settings.json", "[" * 100_000, "is not JSON: "),
        ("claude-code-2.1", "settings.json", "[]", "is not an object"),
        ("claude-code-2.1", "settings.json", '{"hooks": []}', "its member hooks is not an object"),
        ("kimi-1", "config.toml", "hooks = [[", "is not TOML: "),
        ("kimi-1", "config.toml", "[hooks]\nevent = 'Stop'", "its member hooks is not a list of tables"),
        ("kimi-1", "config.toml", "\xff", "is not TOML: "),
        ("codex-0.169", "hooks.json", "\xff", "is not JSON: "),
        ("claude-code-2.1", "settings.json", '{"hooks": {}, "timeout": NaN}', "is not JSON: NaN"),
    ],
)
def test_a_file_that_cannot_be_parsed_is_refused(name: str, file: str, text: str, words: str, tmp_path: Path) -> None:
    """It is no failure of the host that plays the harness, whatever stands in the file."""
    (tmp_path / file).write_bytes(text.encode("latin-1"))
    refused = read_hook_file(tmp_path / file, face(name))
    assert str(refused.refusal).startswith(words)
    assert refused.hooks == {}


@pytest.mark.parametrize("hooks", [None, 3, {"Stop": None}, {"Stop": [{"hooks": 3}, 5, {"hooks": [5]}]}])
def test_odd_values_among_hooks_are_no_hooks(hooks: Any, tmp_path: Path) -> None:
    """Whatever type they are of."""
    assert read("claude-code-2.1", json.dumps({"hooks": hooks}), tmp_path).hooks == {}


@pytest.mark.parametrize(
    ("data", "unread"),
    [
        ({"model": "m", "hooks": {"SessionStart": [{"type": "command", "command": "mem begin"}]}}, ["model", "hooks"]),
        ({"hooks": {"SessionStart": [{"hooks": [{"command": "mem begin"}]}]}}, ["hooks"]),
        ({"hooks": {"SessionStart": []}, "mcpServers": {"mem": {"command": "mem"}}}, []),
        ({"hooks": {"SessionStart": [{"hooks": [HOOK]}]}}, []),
    ],
)
def test_commands_that_stand_where_no_hook_is_read_are_told(data: Any, unread: list[str], tmp_path: Path) -> None:
    """A command below hooks, in no group or of no type, is a hook that never runs, whatever it is called."""
    assert list(read("claude-code-2.1", json.dumps(data), tmp_path).unread) == unread


def test_a_file_that_the_installer_never_wrote_is_refused(tmp_path: Path) -> None:
    """It is told like one that cannot be read."""
    assert (
        read_hook_file(tmp_path / "hooks.json", face("codex-0.169")).refusal
        == "cannot be read: No such file or directory"
    )


def test_a_matcher_that_is_no_regular_expression_matches_nothing() -> None:
    """The run says so, and goes on."""
    hook = Hook("x", 1.0, "[")
    assert not hook.matches("startup")
    (line,) = oddities_of({"Stop": [hook]}, face("codex-0.169"))
    assert line == "Stop: the matcher '[' is not a regular expression: it matches nothing"
    (line,) = oddities_of({"SessionStart": [hook]}, face("claude-code-2.1"))
    assert line == "SessionStart: the matcher '[' is not a regular expression: it matches nothing"
