"""Target profiles: the shipped ones are whole, a repository's own stand in front, and bad ones are told by place."""

from __future__ import annotations

import codecs
import json
import re
import sys
from pathlib import Path

import pytest

from signet_conformance import targets
from signet_conformance.contract import document
from signet_conformance.drivers.launch import command_line
from signet_conformance.errors import SignetConformanceError, TargetError
from signet_conformance.targets.files import find_file


def settings(folder: Path, text: str, name: str = "signet-conformance.toml") -> Path:
    """A repository with these settings."""
    (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", targets.names())
def test_shipped_target_is_whole(name: str, tmp_path: Path) -> None:
    """A shipped profile can be loaded, has a title, and declares agents and known operations only."""
    target = targets.load(name, tmp_path)
    assert target.name == name
    assert target.profile.title != name
    assert target.declared.agents
    known = set(document("operations.json")["operations"])
    assert set(target.declared.capabilities or ()) <= known


@pytest.mark.parametrize("name", ["claude-code", "codex", "hermes-agent", "mcp", "oh-my-pi", "opencode", "pi", "sdk"])
def test_other_agent_has_a_capital_letter(name: str, tmp_path: Path) -> None:
    """Only so every run shows that a connector changes the case of an id; OpenClaw itself writes ids in lower case."""
    _, other = targets.load(name, tmp_path).declared.agents
    assert other != other.lower()


def test_reference_target_runs_with_this_interpreter(tmp_path: Path) -> None:
    """The reference harness is launched by the interpreter that runs the kit."""
    assert targets.load("reference", tmp_path).command == (sys.executable, "-m", "signet_reference_harness")


NEARLY = [("refrence", "reference"), ("open-claw", "openclaw"), ("Codex", "codex"), ("hermes", "hermes-agent")]


@pytest.mark.parametrize(("given", "near"), NEARLY)
def test_unknown_target_names_the_nearest(given: str, near: str, tmp_path: Path) -> None:
    """A name that is nearly right is answered with the right one and with the command that lists all."""
    with pytest.raises(TargetError) as caught:
        targets.load(given, tmp_path)
    nowhere = f"and neither {tmp_path} nor a folder above it has settings"
    assert caught.value.message == f"no target is called '{given}', {nowhere}"
    assert near in str(caught.value.remedy).partition("?")[0]
    assert "signet-conformance targets" in str(caught.value.remedy)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(("word", "meant"), [("{rot}/driver.mjs", "{root}"), ("{Python}", "{python}")])
@pytest.mark.parametrize(
    ("place", "text"),
    [("the command", 'command = ["node", "WORD"]'), ("env.HOOKS", 'command = ["node"]\nenv = {HOOKS = "WORD"}')],
)
def test_a_misspelt_placeholder_is_refused(place: str, text: str, word: str, meant: str, tmp_path: Path) -> None:
    """The program would get it as it stands, and fail at a file of that name."""
    with pytest.raises(TargetError, match=f"of {place} stands for nothing") as caught:
        targets.load("mine", settings(tmp_path, f"[targets.mine]\n{text}\n".replace("WORD", word)))
    assert caught.value.remedy == f"did you mean {meant}?"


@pytest.mark.parametrize("kept", ["{port}", "{host}", "${root_of}", "{}"])
def test_other_braces_of_a_variable_are_the_programs(kept: str, tmp_path: Path) -> None:
    """Of the placeholders only `{root}` and `{python}` mean something there."""
    text = f'[targets.mine]\ncommand = ["acme"]\nenv = {{HOOKS = "{kept}:{{root}}/hooks:{{python}}"}}\n'
    env = targets.load("mine", settings(tmp_path, text)).env
    assert env == {"HOOKS": f"{kept}:{tmp_path}/hooks:{sys.executable}"}


@pytest.mark.parametrize("word", ["${ROOT}/driver.mjs", "{print}", "{}", "{{root}"])
def test_other_braces_of_a_command_are_the_programs(word: str, tmp_path: Path) -> None:
    """Shells, awk and templates have braces of their own."""
    written = settings(tmp_path, f'[targets.mine]\ncommand = ["sh", "-c", "{word}"]\n')
    assert targets.load("mine", written).command[2] == word.replace("{root}", str(tmp_path))


def test_settings_with_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    """Editors on Windows put one in front of what they save."""
    (tmp_path / "signet-conformance.toml").write_bytes(codecs.BOM_UTF8 + b'[targets.mine]\ncommand = ["acme"]\n')
    assert targets.load("mine", tmp_path).command == ("acme",)


def test_a_target_of_another_name_is_not_suggested(tmp_path: Path) -> None:
    """Three letters that both names have do not make them near."""
    with pytest.raises(TargetError) as caught:
        targets.load("mine", tmp_path)
    assert caught.value.remedy == "all targets: signet-conformance targets"


def test_unknown_target_of_a_repository_with_settings(tmp_path: Path) -> None:
    """The error says which file was read, and what it holds."""
    file = settings(tmp_path, '[targets.mine]\ncommand = ["acme"]\n') / "signet-conformance.toml"
    with pytest.raises(TargetError) as caught:
        targets.load("main", tmp_path)
    read = f"neither in the kit nor in {file}, whose targets are: mine"
    assert caught.value.message == f"no target is called 'main', {read}"


@pytest.mark.parametrize(
    ("name", "text", "unread", "heading"),
    [
        ("signet-conformance.toml", "[tool.signet-conformance.targets.mine]", "tool", "[targets.NAME]"),
        ("signet-conformance.toml", "[target.mine]", "target", "[targets.NAME]"),
        (
            "pyproject.toml",
            "[tool.signet-conformance.mine]",
            "tool.signet-conformance.mine",
            "[tool.signet-conformance.targets.NAME]",
        ),
    ],
)
def test_heading_that_nothing_is_read_from(tmp_path: Path, name: str, text: str, unread: str, heading: str) -> None:
    """It is told with its file and the right heading, and not passed over: the target would just be unknown."""
    with pytest.raises(TargetError) as caught:
        targets.load("mine", settings(tmp_path, f'{text}\ncommand = ["acme"]\n', name))
    assert (caught.value.where, caught.value.message) == (str(tmp_path / name), f"nothing is read from '{unread}'")
    assert str(caught.value.remedy).startswith(f"write each target as {heading}")


@pytest.mark.parametrize("given", ["", "zzzz", "../reference", "reference.json", "a\x1b[31mb"])
def test_name_like_nothing_known_still_gets_an_answer(given: str, tmp_path: Path) -> None:
    """Whatever is given as a name, the error lists known ones and shows it harmlessly."""
    with pytest.raises(TargetError, match="no target is called") as caught:
        targets.load(given, tmp_path)
    assert str(caught.value.remedy).endswith("ll targets: signet-conformance targets")
    assert "\x1b" not in str(caught.value)


HOSTS = {
    "command-hooks": 'config = "hooks.json"\nface = "codex-0.169"',
    "node-plugin": 'module = "x.mjs"\nface = "openclaw-2026.6.1"',
}


@pytest.mark.parametrize("driver", HOSTS)
def test_a_process_for_each_session_needs_a_host_that_resumes_in_another(driver: str, tmp_path: Path) -> None:
    """Else each resume would be blamed on the connector: it is refused when the settings are read."""
    text = f'[targets.mine]\ndriver = "{driver}"\n{HOSTS[driver]}\n'
    assert targets.load("mine", settings(tmp_path, text + 'processes = "agent"\n')).processes == "agent"
    with pytest.raises(TargetError, match="resumes a session only in the process that began it") as caught:
        targets.load("mine", settings(tmp_path, text + 'processes = "session"\n'))
    assert caught.value.where == f"{tmp_path / 'signet-conformance.toml'}: targets.mine"
    assert 'processes = "agent"' in str(caught.value.remedy)


@pytest.mark.parametrize(
    "text",
    [
        'driver = "node-plugin"\nmodule = "x.mjs"\nface = "pi-0.73"',
        'driver = "python-plugin"\nmodule = "x.py"\nface = "hermes-agent-0.19"',
        'command = ["acme"]',
    ],
)
def test_a_host_that_resumes_in_another_process_may_have_one_for_each_session(text: str, tmp_path: Path) -> None:
    """Pi and Hermes are programs that a user starts for a session."""
    target = targets.load("mine", settings(tmp_path, f'[targets.mine]\n{text}\nprocesses = "session"\n'))
    assert target.processes == "session"


def test_repository_s_own_target(tmp_path: Path) -> None:
    """A target of the settings is loaded by its name, with `{python}` and `{root}` filled in."""
    text = '[targets.mine]\ncommand = ["{python}", "{root}/driver.py"]\nharness = "acme"\nagents = ["atlas-agent"]\n'
    target = targets.load("mine", settings(tmp_path, text))
    assert target.command == (sys.executable, f"{tmp_path}/driver.py")
    assert (target.driver, target.declared.harness, target.declared.agents) == ("command", "acme", ("atlas-agent",))


def test_settings_are_found_from_a_folder_below(tmp_path: Path) -> None:
    """The nearest settings at or above the folder count, also as a table of pyproject.toml."""
    settings(tmp_path, '[tool.signet-conformance.targets.mine]\ncommand = ["acme"]\n', "pyproject.toml")
    below = tmp_path / "packages" / "connector"
    below.mkdir(parents=True)
    assert targets.load("mine", below).command == ("acme",)


def test_own_settings_stand_in_front_of_a_shipped_profile(tmp_path: Path) -> None:
    """What the repository declares replaces that member of the shipped profile and leaves the others."""
    shipped = targets.load("reference", tmp_path).declared
    own = targets.load("reference", settings(tmp_path, '[targets.reference]\nharness = "acme"\n')).declared
    assert own.harness == "acme"
    assert own.agents == shipped.agents
    assert own.capabilities == shipped.capabilities


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('harness = "acme"\ndeclared = {harness = "mine"}', 'harness is "acme", and declared.harness is "mine"'),
        ('agents = ["a"]\ndeclared = {agents = ["a", "b"]}', 'agents is ["a"], and declared.agents is ["a", "b"]'),
    ],
)
def test_a_declaration_that_is_given_twice_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """Which of the two counts, nobody could see."""
    with pytest.raises(TargetError, match=re.escape(message)) as caught:
        targets.load("mine", settings(tmp_path, f'[targets.mine]\ncommand = ["acme"]\n{text}\n'))
    assert str(caught.value.remedy).startswith("keep one of the two: ")


@pytest.mark.parametrize("name", ["", " ", "my connector", ".mine"])
def test_a_target_with_an_unusable_name_is_refused(name: str, tmp_path: Path) -> None:
    """The error names the file, and what a name may hold."""
    with pytest.raises(TargetError, match=re.escape(f'"{name}" is not a valid target name')) as caught:
        targets.load(name, settings(tmp_path, f'[targets."{name}"]\ncommand = ["acme"]\n'))
    assert caught.value.where == str(tmp_path / "signet-conformance.toml")
    assert caught.value.remedy == "use letters, digits, -, _ and . only, such as [targets.mine]"


@pytest.mark.parametrize(
    "text",
    [
        "[targets.mine",
        "targets = 7",
        "targets.mine = 7",
        "[targets.mine]\n",
        '[targets.mine]\ncommand = "acme"\n',
        "[targets.mine]\ncommand = [7]\n",
        '[targets.mine]\ncommand = ["acme"]\nagents = "atlas-agent"\n',
        '[targets.mine]\ncommand = ["acme"]\nharness = 7\n',
        '[targets.mine]\ncommand = ["acme"]\nbounds_s = {start = -1}\n',
        '[targets.mine]\ncommand = ["acme"]\nprocesses = "two"\n',
        '[targets.mine]\ncommand = ["acme"]\nenv = {A = 1}\n',
        '[targets.mine]\ndriver = "telepathy"\n',
    ],
)
def test_bad_settings_are_refused_with_their_file(tmp_path: Path, text: str) -> None:
    """Settings that cannot be used are one error that names the file and says what to write."""
    with pytest.raises(SignetConformanceError) as caught:
        targets.load("mine", settings(tmp_path, text))
    assert "signet-conformance.toml" in str(caught.value.where)
    assert caught.value.remedy
    assert caught.value.exit_status == 2


def test_repository_s_own_targets_are_among_the_known(tmp_path: Path) -> None:
    """What the settings name is known beside what comes with the kit."""
    profiles = targets.known_names(settings(tmp_path, '[targets.mine]\ncommand = ["acme"]\n'))
    assert list(profiles) == sorted([*targets.names(), "mine"])


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ('capabilites = ["health"]', "unknown member 'capabilites'", "did you mean"),
        (
            'capabilities = ["session-strt"]',
            "/capabilities/0: the contract has no operation 'session-strt'",
            "session-start",
        ),
        ('driver = "comand"', '/driver: is "comand"', "one of command, command-hooks"),
        ("bounds_s = {start = 0}", "/bounds_s/start: is 0, expected a number above 0", "seconds above 0"),
        ("bounds_s = {begin = 5.0}", "/bounds_s: 'begin' is not a bound", "one of start, prompt"),
        ("bounds_s = {start = 5000}", "/bounds_s/start: is 5000, expected a number of 3600.0 or less", "seconds"),
        ('agents = ["a", "a"]', "/agents: names 'a' twice", "once"),
        ('harness = " "', "/harness: is blank", "sends as its harness"),
        ('tools = {memory_stor = "x"}', "the scenarios call no tool 'memory_stor'", "memory_store"),
        ('env = {SIGNET_TOKEN = "x"}', "/env: sets SIGNET_TOKEN, which each run sets", "take SIGNET_TOKEN out"),
        ("declared = 7", "/declared: ", ""),
        ("title = 1979-05-27", "/title is a date", "as a string"),
        ('agents = ["a", "b\\u0000"]', "/agents/1 holds a null character", "as a string"),
        ("declared = {agents = [1]}", "/declared/agents/0: is 1, expected a text", "atlas-agent"),
        ('name = "mine"', "unknown member 'name'", "did you mean"),
        ("runtime = []", "/runtime: is an empty list, expected a list of 1 or more", "bun"),
        ('capabilities = ["health", "health"]', "/capabilities: names 'health' twice", "once"),
        ("plugin_config = {a = 1979-05-27}", "/plugin_config/a is a date", "as a string"),
        ("plugin_config." + "a." * 3000 + "b = 1", "tables deep", "nest at most 100"),
        ("sessions = 1e400", "/sessions: is ", "a whole number such as 20"),
        ('title = "\\u202e"\ndriver = "\\u001b[31m"', '/driver: is "\\u001b[31m"', "one of command"),
        ('env = {"A=B" = "x"}', '/env: "A=B" does not match', ""),
    ],
)
def test_slip_of_the_pen_is_told_by_place_and_remedy(text: str, message: str, remedy: str, tmp_path: Path) -> None:
    """A setting that nothing reads, or of a wrong kind, names the file, the JSON pointer and what to write."""
    with pytest.raises(TargetError) as caught:
        targets.load("mine", settings(tmp_path, f'[targets.mine]\ncommand = ["acme"]\n{text}\n'))
    assert caught.value.where == f"{tmp_path / 'signet-conformance.toml'}: targets.mine"
    assert message in caught.value.message
    assert remedy in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ('driver = "node-plugin"\ncommand = ["acme"]', "the driver node-plugin does not read command", "http-adapter"),
        ('command = ["acme"]\nurl = "http://127.0.0.1:1"', "the driver command does not read url", "http-adapter, mcp"),
        ('command = ["acme"]\nmodule = "x.js"', "the command does not use module", "{module}"),
        ('command = ["acme"]\nruntime = "node"', "the command does not use runtime", "{runtime}"),
        ('driver = "mcp"\ncommand = ["acme"]\nmodule = "x.js"', "does not read module beside command", "or module"),
        ('driver = "mcp"\nurl = "http://127.0.0.1:1"\nruntime = "bun"', "does not read runtime beside url", "url"),
        ('driver = "mcp"\nmodule = "x.js"\npaths = {}', "the driver mcp does not read paths", "http-adapter"),
        ('driver = "http-adapter"\nface = "kimi-1"', "the driver http-adapter does not read face", "command-hooks"),
        ('driver = "python-plugin"\nruntime = "python"', "the driver python-plugin does not read runtime", "mcp"),
        ('driver = "command-hooks"\nconfig = "a"\nmodule = "b"', "does not read module beside config", "config"),
    ],
)
def test_setting_that_nothing_would_read_is_refused(text: str, message: str, remedy: str, tmp_path: Path) -> None:
    """A setting that the target's driver ignores is an error that names it and the drivers that read it."""
    with pytest.raises(TargetError) as caught:
        targets.load("mine", settings(tmp_path, f"[targets.mine]\n{text}\n"))
    assert message in caught.value.message
    assert remedy in str(caught.value.remedy)


def test_what_a_shipped_profile_holds_is_no_setting_of_the_author_s(tmp_path: Path) -> None:
    """A shipped target takes another server although its own profile names files and a runtime."""
    target = targets.load("gemini", settings(tmp_path, '[targets.gemini]\ncommand = ["acme", "{root}/x"]\n'))
    assert target.command == ("acme", f"{tmp_path}/x")
    text = '[targets.llama-cpp]\nmodule = "dist/other.js"\nruntime = "node"\n'
    assert targets.load("llama-cpp", settings(tmp_path, text)).profile.module == "dist/other.js"


def test_own_memory_server_plays_the_shipped_face(tmp_path: Path) -> None:
    """The face of a driver's own profile is that of every target with the driver, unless it names another."""
    shipped = targets.load("mcp", tmp_path).profile.face
    own = '[targets.mine]\ndriver = "mcp"\ncommand = ["acme"]\n'
    assert targets.load("mine", settings(tmp_path, own)).profile.face == shipped
    assert targets.load("mine", settings(tmp_path, f'{own}face = "other.json"\n')).profile.face == "other.json"


@pytest.mark.parametrize(
    ("text", "agents"),
    [
        ("[targets.codex]\n", ()),
        ('[targets.codex]\nagents = ["ours"]\n', ("ours",)),
        ('[targets.codex.declared]\nagents = ["ours"]\n', ("ours",)),
    ],
)
def test_agents_of_a_shipped_profile_are_given_to_driven_connectors_alone(
    text: str, agents: tuple[str, ...], tmp_path: Path
) -> None:
    """A recording of somebody's own session is held to agents that the repository names, never to made-up ones."""
    settings(tmp_path, text)
    target = targets.load("codex", tmp_path)
    assert target.declared.agents == (agents or ("atlas-agent", "Beacon-Agent"))
    assert target.declared_of_recordings.agents == agents
    assert target.declared_of_recordings.harness == "codex"


def released(folder: Path, place: str, version: str) -> Path:
    """A connector's file of a release, in a repository with nothing else."""
    file = folder / place
    file.parent.mkdir(parents=True)
    file.write_text("")
    (file.parents[1] / "package.json").write_text(json.dumps({"name": "x", "version": version}))
    settings(folder, "[targets]\n")
    return file


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("codex", "packages/connector-codex/dist/index.js"),
        ("pi", "packages/pi-extension/dist/signet-pi.mjs"),
        ("oh-my-pi", "packages/oh-my-pi-extension/dist/signet-oh-my-pi.mjs"),
        ("hermes-agent", "packages/connector-hermes-agent/hermes-plugin/__init__.py"),
        ("forge", "packages/connector-forge/dist/index.js"),
    ],
)
def test_connectors_below_packages_are_driven(name: str, place: str, tmp_path: Path) -> None:
    """Releases up to 0.108 keep them there; those of Codex install hooks from 0.71.0 on."""
    file = released(tmp_path, place, "0.98.13")
    target = targets.load(name, tmp_path)
    assert find_file(target) == file
    assert target.undriven is None


@pytest.mark.parametrize(
    ("version", "place", "lacks", "token"),
    [
        ("0.58.1", "packages/connector-claude-code/dist/index.js", {"health", "notifications"}, False),
        ("0.109.15", "integrations/claude-code/connector/dist/index.js", {"notifications"}, False),
        ("0.145.7", "integrations/claude-code/connector/dist/index.js", {"notifications"}, True),
        ("0.183.0", "integrations/claude-code/connector/dist/index.js", set(), True),
    ],
)
def test_earlier_release_declares_what_it_can_do(
    version: str, place: str, lacks: set[str], token: bool, tmp_path: Path
) -> None:
    """The connector is found where that release has it, and its package tells which release it is."""
    file = released(tmp_path, place, version)
    target = targets.load("claude-code", tmp_path)
    assert find_file(target) == file
    assert target.release == version
    assert set(target.profile.declared.capabilities or ()) - set(target.declared.capabilities or ()) == lacks
    assert target.declared.token is token


@pytest.mark.parametrize(
    ("version", "known"), [("0.46.9", ["SIGNET_NO_HOOKS"]), ("0.47.0", ["SIGNET_BYPASS", "SIGNET_NO_HOOKS"])]
)
def test_earlier_release_is_tried_with_the_off_switches_that_it_knows(
    version: str, known: list[str], tmp_path: Path
) -> None:
    """A variable that came later switches nothing off; one of the repository's own settings counts before it."""
    released(tmp_path, "packages/connector-claude-code/dist/index.js", version)
    assert list(targets.load("claude-code", tmp_path).profile.bypass_env) == known
    settings(tmp_path, '[targets.claude-code.bypass_env]\nACME_OFF = "1"\n')
    assert list(targets.load("claude-code", tmp_path).profile.bypass_env) == ["ACME_OFF"]


@pytest.mark.parametrize(("version", "known"), [("0.112.1", False), ("0.113.0", True)])
def test_opencode_is_tried_with_the_switch_for_background_agents(version: str, known: bool, tmp_path: Path) -> None:
    """From the release on whose documents say that it keeps Signet's own background agents from sending hooks."""
    released(tmp_path, "integrations/opencode/plugin/dist/signet.mjs", version)
    assert ("SIGNET_NO_HOOKS" in targets.load("opencode", tmp_path).profile.bypass_env) is known


def test_own_settings_count_before_those_of_an_earlier_release(tmp_path: Path) -> None:
    """Who says that a connector takes a token is held to it, whatever is known of its release."""
    released(tmp_path, "integrations/codex/connector/dist/index.js", "0.109.15")
    settings(tmp_path, "[targets.codex]\ntoken = true\n")
    assert targets.load("codex", tmp_path).declared.token is True


def test_release_that_the_kit_cannot_drive(tmp_path: Path) -> None:
    """It is refused with the reason; a file of hooks of one's own is driven all the same."""
    released(tmp_path, "packages/connector-codex/dist/index.js", "0.58.1")
    with pytest.raises(TargetError, match=r"cannot drive codex 0\.58\.1: connectors before 0\.71\.0 install a wrapper"):
        command_line(targets.load("codex", tmp_path))
    settings(tmp_path, '[targets.codex]\nconfig = "hooks.json"\n')
    assert targets.load("codex", tmp_path).undriven is None
