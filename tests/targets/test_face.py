"""Faces and profiles against their schemas: the shipped ones fit, and a bad one is told by file, place and value."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from signet_conformance import targets
from signet_conformance.contract import document
from signet_conformance.errors import TargetError
from signet_conformance.targets.face import (
    FOLDER,
    ahead_of_connector,
    changes_of_id,
    face_of_the_day,
    find_face,
    has_own_tools,
    with_faces,
)
from signet_conformance.targets.face_document import FaceDocument
from signet_conformance.targets.kinds import HOSTS
from signet_conformance.targets.profile import Profile
from signet_conformance.targets.program import PLACE_VARIABLE
from signet_conformance.targets.real import HarnessChoice, with_harness
from tests.support.stand_ins import install_stand_in, write_target

ROOT = Path(__file__).parents[2]
FACES = sorted(FOLDER.glob("*.json"))
PROFILES = sorted(Path(targets.__file__).parent.glob("*.json"))
PLAYED = ("claude-code", "codex", "hermes-agent", "oh-my-pi", "opencode", "pi", "sdk")
HOOKS: Mapping[str, Any] = json.loads((FOLDER / "kimi-1.json").read_bytes())


def test_every_listed_connector_has_a_profile() -> None:
    """Each connector with a row and a page in docs/connectors is known by name, and the other way round."""
    pages = ROOT / "docs" / "connectors"
    rows = re.findall(r"^\| \[([a-z-]+)\]\(\1\.md\) \|", (pages / "README.md").read_text(), re.MULTILINE)
    known = set(targets.names()) - {"reference", "reference-adapter"}
    assert set(rows) == known, "its row in docs/connectors/README.md, and its profile, targets/NAME.json"
    assert [name for name in rows if not (pages / f"{name}.md").is_file()] == [], "its page, docs/connectors/NAME.md"


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_shipped_profile_fits_its_schema(path: Path) -> None:
    """A profile fits the schema, says how the connector takes its agent, and is named like its file."""
    data = json.loads(path.read_bytes())
    assert jsonschema_rs.validator_for(document(Profile.schema_file)).is_valid(data)
    assert data["name"] == path.stem
    assert data["identity"]


@pytest.mark.parametrize("path", FACES, ids=lambda path: path.stem)
def test_shipped_face_fits_its_schema(path: Path) -> None:
    """A face fits the schema, is named after its harness, and names code that exists."""
    data = json.loads(path.read_bytes())
    assert jsonschema_rs.validator_for(document(FaceDocument.schema_file)).is_valid(data)
    assert path.stem.startswith(f"{data['harness']}-")
    assert "code" not in data or (HOSTS / data["code"]).is_file()
    lists = (*data.get("steps", {}).values(), data.get("turn_end", []))
    fired = [action["event"] for actions in lists for action in actions if "event" in action]
    assert set(fired) <= set(data.get("events", ()))


@pytest.mark.parametrize("name", [name for name in targets.names() if targets.load(name).profile.face])
def test_shipped_profile_names_a_face_that_its_driver_plays(name: str) -> None:
    """Every profile with a face finds it."""
    assert find_face(targets.load(name)).data.format == "signet-face/1"


def own(folder: Path, face: Any, driver: str = "command-hooks") -> targets.Target:
    """A target of a repository with a face of its own."""
    (folder / "face.json").write_text(face if isinstance(face, str) else json.dumps(face))
    text = f'[targets.mine]\ndriver = "{driver}"\nface = "face.json"\n'
    (folder / "signet-conformance.toml").write_text(text)
    return targets.load("mine", folder)


def test_events_that_tell_of_another_id_are_known_events() -> None:
    """Who hears of another id of a session is told by an event, hook or call that the face plays."""
    for face in map(find_face, map(targets.load, PLAYED)):
        known = {*face.data.events, *face.data.hooks, *(face.data.calls or ()), "session.created"}
        told = {event for events in face.data.changes_id.values() for event in events}
        assert told <= known, face.name


@pytest.mark.parametrize(
    ("name", "step", "told_by"),
    [
        ("hermes-agent", "compact", ("on_session_switch",)),
        ("claude-code", "clear", ("SessionEnd", "SessionStart")),
        ("claude-code", "compact", ()),
        ("reference", "clear", None),
    ],
)
def test_what_tells_of_another_id(name: str, step: str, told_by: tuple[str, ...] | None) -> None:
    """A face names the events; without a face nothing is known of them."""
    assert changes_of_id(targets.load(name), step) == told_by


@pytest.mark.parametrize(
    ("name", "tools", "has"),
    [
        ("hermes-agent", ["memory"], True),
        ("openclaw", ["memory"], False),
        ("reference", ["memory"], False),
        ("reference", [], True),
    ],
)
def test_own_tools_of_a_harness_stand_in_its_face(name: str, tools: list[str], has: bool) -> None:
    """A scenario in which the model calls one is performed where the harness has it alone."""
    assert has_own_tools(targets.load(name), tools) is has


@pytest.mark.parametrize("name", ["claude-code-2.1", "codex-0.169", "kimi-1", "muse-code-1"])
def test_hooks_of_a_tool_are_told_which_it_is(name: str) -> None:
    """Every host whose connector has commands for hooks plays those before and after a call."""
    face = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    assert [action.get("event", "call") for action in face["steps"]["tool"]] == ["PreToolUse", "call", "PostToolUse"]
    assert {"tool_name", "tool_input"} <= set(face["events"]["PreToolUse"])
    assert face["matchers"]["PreToolUse"] == "tool_name"


def test_face_of_the_repository_s_own(tmp_path: Path) -> None:
    """A face that ends in .json is a file beside the settings."""
    face = find_face(own(tmp_path, {**HOOKS, "version": "2"}))
    assert (face.name, face.path) == ("kimi-2", tmp_path / "face.json")


@pytest.mark.parametrize(
    ("change", "place", "remedy"),
    [
        ({"timeout_unit_s": 0}, "/timeout_unit_s: ", "seconds"),
        ({"turn_end": [{"fire": "Stop"}]}, "/turn_end/0: ", "one of {event}"),
        ({"transcript": "gemini"}, '/transcript: is "gemini"', "one of claude, codex"),
        ({"timeout_units": 1}, "unknown member 'timeout_units'", "did you mean timeout_unit_s"),
        ({"mcp": {"file": 7, "members": []}}, "/mcp/file: ", ""),
    ],
)
def test_bad_face_is_told_by_file_place_and_remedy(
    change: Mapping[str, Any], place: str, remedy: str, tmp_path: Path
) -> None:
    """A face that breaks the schema is one error with its path, the JSON pointer, the value and what to write."""
    with pytest.raises(TargetError) as caught:
        find_face(own(tmp_path, {**HOOKS, **change}))
    assert caught.value.where == str(tmp_path / "face.json")
    assert place in caught.value.message
    assert remedy in str(caught.value.remedy)


def test_face_that_the_page_shows_can_be_played(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "add-a-connector.md").read_text("utf-8")
    (shown,) = re.findall(r"^```json\n(\{\n.*?^\})\n```", page, re.MULTILINE | re.DOTALL)
    face = find_face(own(tmp_path, json.loads(shown)))
    assert set(face.data.steps) == {"start", "prompt", "end"}


@pytest.mark.parametrize("text", ["", "{", "[1"])
def test_face_that_is_no_json(text: str, tmp_path: Path) -> None:
    """A file that is not JSON is told by its path."""
    with pytest.raises(TargetError, match=r"face\.json: is not JSON"):
        find_face(own(tmp_path, text))


def test_face_for_another_kind_of_harness(tmp_path: Path) -> None:
    """A driver that runs commands cannot play a harness that loads plugins."""
    with pytest.raises(TargetError, match=r"the driver node-plugin cannot play the face .*: it has no 'code'"):
        find_face(own(tmp_path, HOOKS, "node-plugin"))


def test_unknown_face_lists_the_known(tmp_path: Path) -> None:
    """A name that no face has is answered with all that there are."""
    (tmp_path / "signet-conformance.toml").write_text('[targets.pi]\nface = "pi-0.99"\n')
    with pytest.raises(TargetError, match=r"no face is called 'pi-0\.99'") as caught:
        find_face(targets.load("pi", tmp_path))
    assert all(path.stem in str(caught.value.remedy) for path in FACES)


@pytest.mark.parametrize(
    ("name", "choice", "expected"),
    [
        ("openclaw", None, ["openclaw-2026.6.1"]),
        ("openclaw", "openclaw-2026.9.6", ["openclaw-2026.9.6"]),
        ("openclaw", "2026.9.6", ["openclaw-2026.9.6"]),
        ("openclaw", "all", ["openclaw-2026.2", "openclaw-2026.3", "openclaw-2026.6.1", "openclaw-2026.9.6"]),
        ("pi", "all", ["pi-0.54", "pi-0.73"]),
        ("codex", "all", ["codex-0.124", "codex-0.169"]),
        ("reference", None, [None]),
    ],
)
def test_face_is_chosen(name: str, choice: str | None, expected: list[str | None]) -> None:
    """By its name or its release, or every one of the target's harness from the oldest on; its own without a choice."""
    assert [each.profile.face for each in with_faces(targets.load(name), choice, "--face")] == expected


@pytest.mark.parametrize(
    ("name", "day", "face"),
    [
        ("codex-0.169", "2026-04-26", "codex-0.124"),
        ("codex-0.169", "2026-06-24", "codex-0.169"),
        ("codex-0.169", "2027-01", "codex-0.169"),
        ("openclaw-2026.6.1", "2026-02-23", "openclaw-2026.2"),
        ("openclaw-2026.6.1", "2026-03-31", "openclaw-2026.3"),
        ("openclaw-2026.6.1", "2026-06-24", "openclaw-2026.6.1"),
        ("openclaw-2026.6.1", "2026-10", "openclaw-2026.9.6"),
        ("claude-code-2.1", "2026-05-28", "claude-code-2.1.9"),
        ("hermes-agent-0.19", "2026-05-28", "hermes-agent-0.19"),
        ("../ours.json", "2026-05-28", "../ours.json"),
    ],
)
def test_face_of_the_day(name: str, day: str, face: str) -> None:
    """The one that people ran then, or else the first later one; a harness without times keeps its face."""
    assert face_of_the_day(name, day) == face


def test_times_of_the_faces_of_a_harness_do_not_overlap() -> None:
    """Each begins where the one before has ended, or later; only the newest has no end."""
    times: dict[str, list[tuple[str, str]]] = {}
    for path in FACES:
        face = FaceDocument.model_validate(json.loads(path.read_bytes()))
        if face.current is not None:
            times.setdefault(face.harness, []).append((face.current.from_, face.current.to or "9999"))
    for each in map(sorted, times.values()):
        assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(each))


@pytest.mark.parametrize(
    ("release", "package", "own", "face"),
    [
        ("0.109.15", "@signet/connector-codex", "", "codex-0.124"),
        ("0.145.7", "@signet/connector-codex", "", "codex-0.169"),
        ("0.206.0", "@signet/connector-codex", "", "codex-0.169"),
        ("0.109.15", "@acme/codex-memory", "", "codex-0.169"),
        ("0.109.15", "@acme/codex-memory", 'released = "2026-04"', "codex-0.124"),
        ("0.109.15", "@signet/connector-codex", 'face = "codex-0.169"', "codex-0.169"),
    ],
)
def test_connector_meets_the_harness_of_its_day(
    release: str, package: str, own: str, face: str, tmp_path: Path
) -> None:
    """The days of Signet's releases are known; others may name theirs, and a face that is named counts."""
    file = tmp_path / "integrations/codex/connector/dist/index.js"
    file.parent.mkdir(parents=True)
    file.touch()
    (file.parent.parent / "package.json").write_text(json.dumps({"name": package, "version": release}))
    (tmp_path / "signet-conformance.toml").write_text(f"[targets.codex]\n{own}\n")
    assert targets.load("codex", tmp_path).profile.face == face


def test_face_of_a_file_is_chosen(tmp_path: Path) -> None:
    """The path of a .json file counts from where one stands, and a target can play it in place of its own."""
    (tmp_path / "ours.json").write_text((FOLDER / "codex-0.169.json").read_text())
    (own,) = with_faces(targets.load("codex"), str(tmp_path / "ours.json"), "--face")
    assert find_face(own).path == tmp_path / "ours.json"


@pytest.mark.parametrize(
    ("name", "choice", "said"),
    [
        ("openclaw", "2027.1", "no face is called '2027.1'"),
        ("openclaw", "codex-0.169", "the driver node-plugin cannot play the face"),
        ("openclaw", "gone.json", "cannot be read"),
        ("reference", "all", "reference has no face: the driver command does not play a harness"),
    ],
)
def test_face_that_cannot_be_played_is_refused(name: str, choice: str, said: str) -> None:
    """With the option as its place, or the target's, and what can be named instead."""
    with pytest.raises(TargetError, match=said) as caught:
        with_faces(targets.load(name), choice, "--face")
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openclaw", "openclaw 2026.6.1; newer: 2026.9.6 (--face openclaw-2026.9.6)"),
        (
            "codex",
            "codex 0.169.0; newer: 0.171.0 (fires the same hooks, in the same order, with the same members)",
        ),
        ("oh-my-pi", "oh-my-pi 13.19.0; newer: 18.3.4 (nothing is known of its host: it could not be installed)"),
    ],
)
def test_what_is_played_is_told_beside_what_is_newer(name: str, said: str) -> None:
    """With the option that plays a newer release, or what is known of one that the kit does not play."""
    assert find_face(targets.load(name)).describe("--face") == said


@pytest.mark.parametrize(("release", "ahead"), [("2.1.332", ("2026-06", "2026-02-20")), ("0.0.1", ())])
def test_a_real_host_is_newer_than_its_connector(
    release: str, ahead: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the face that plays it says; of a program that is older than every face nothing is known."""
    install_stand_in("claude-code", tmp_path / "programs", release)
    monkeypatch.setenv(PLACE_VARIABLE, str(tmp_path / "programs"))
    write_target("claude-code", tmp_path, "")
    settings = tmp_path / "signet-conformance.toml"
    settings.write_text(settings.read_text() + 'released = "2026-02-20"\n')
    real = with_harness(targets.load("claude-code", tmp_path), HarnessChoice("real"), "--harness")
    assert ahead_of_connector(real) == ahead


def test_release_that_only_another_face_knows_is_newer_too() -> None:
    """Each face of a harness knows what any of them knows."""
    old, new = (find_face(each) for each in with_faces(targets.load("pi"), "all", "--face"))
    assert (old.newer, new.newer) == (["0.73.1", "1.6.0"], ["1.6.0"])
