"""What a target needs: each thing is found, or missing with the way to get it, or a note on the harness."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from signet_conformance import targets
from signet_conformance.drivers.launch import command_line
from signet_conformance.errors import TargetError
from signet_conformance.targets.doctor import Prerequisite, examine


def needs(name: str, folder: Path, text: str = "") -> list[Prerequisite]:
    """What a target needs in a repository with these settings and nothing else."""
    (folder / "signet-conformance.toml").write_text(text or "[targets]\n")
    return list(examine(targets.load(name, folder)))


@pytest.mark.parametrize("name", targets.names())
def test_every_target_can_be_examined(name: str, tmp_path: Path) -> None:
    """Whatever the machine has, each need is found or comes with a remedy; only the kit's own are whole everywhere."""
    listed = needs(name, tmp_path)
    assert listed
    assert all(need.found is not None or need.remedy for need in listed)
    assert any(need.found is None for need in listed) is not name.startswith("reference")


def test_connector_that_is_not_there(tmp_path: Path) -> None:
    """What is missing says where it was looked for, how it is built, and which setting names it."""
    (missing,) = [need for need in needs("kimi", tmp_path) if need.found is None and need.what == "the connector"]
    assert "integrations/kimi/connector/dist/index.js" in str(missing.remedy)
    assert "bun run build" in str(missing.remedy)
    assert "targets.kimi" in str(missing.remedy)


def test_harness_that_nobody_watched(tmp_path: Path) -> None:
    """What a face had to settle without a running harness is told, with the way to correct it."""
    notes = [f"{need.what}: {need.found}" for need in needs("muse-code", tmp_path) if need.note]
    assert any("not against a running Muse Code" in note for note in notes)
    assert any("copy that face into a .json file of your own" in note for note in notes)


def test_target_that_only_its_author_can_drive(tmp_path: Path) -> None:
    """A shipped target without a program says what the author has to write, also when a run asks for it."""
    text = '[targets.mine]\nbuild = "write a driver program"\n'
    assert needs("mine", tmp_path, text) == [
        Prerequisite("a program that speaks signet-driver/1", None, "write a driver program")
    ]
    with pytest.raises(TargetError, match="no program drives mine yet") as caught:
        command_line(targets.load("mine", tmp_path))
    assert caught.value.remedy == "write a driver program"


def test_program_that_is_not_installed(tmp_path: Path) -> None:
    """A command whose program is not on PATH is missing; one that is there is found."""
    (need,) = needs("mine", tmp_path, '[targets.mine]\ncommand = ["no-such-program-here"]\n')
    assert (need.found, "no-such-program-here is not on PATH" in str(need.remedy)) == (None, True)
    (need,) = needs("mine", tmp_path, '[targets.mine]\ncommand = ["{python}", "driver.py"]\n')
    assert need.found == f"{sys.executable} driver.py"


def test_file_of_hooks(tmp_path: Path) -> None:
    """Where the settings name the file of hooks, that is what has to be there."""
    text = '[targets.codex]\nconfig = "hooks.json"\n'
    assert any(need.found is None and "hooks.json" in str(need.remedy) for need in needs("codex", tmp_path, text))
    (tmp_path / "hooks.json").write_text("{}")
    assert any(need.found == str(tmp_path / "hooks.json") for need in needs("codex", tmp_path, text))
    missing = {need.what for need in needs("codex", tmp_path, text) if need.found is None}
    assert not any(what.startswith("the program") for what in missing), "hooks of the author's own may call others"


def test_file_of_hooks_needs_no_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands may be in any language; only the installer of a shipped connector needs a runtime."""
    monkeypatch.setenv("PATH", "")
    (tmp_path / "hooks.json").write_text("{}")
    text = '[targets.mine]\ndriver = "command-hooks"\nface = "kimi-1"\nconfig = "hooks.json"\n'
    assert [need.what for need in needs("mine", tmp_path, text) if need.found is None] == []
    target = targets.load("mine", tmp_path)
    assert target.kind.command_line(target)


def lacking(folder: Path, text: str) -> str:
    """What the target `mine` with these settings lacks first, in words."""
    return next(f"{need.what}: {need.remedy}" for need in needs("mine", folder, text) if need.found is None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('driver = "node-plugin"\nmodule = "package.json"', "package.json is not a program"),
        ('driver = "node-plugin"\nmodule = "src"', "src is a folder, the driver node-plugin loads .js"),
        ('driver = "node-plugin"\nmodule = "plugin.py"', "plugin.py is not a program"),
        ('driver = "python-plugin"\nmodule = "src"', "src is a folder, the driver python-plugin loads .py"),
        ('driver = "python-plugin"\nmodule = "plugin.py"', "a face: no face is named"),
        ('driver = "node-plugin"\nmodule = "dist/gone.mjs"', "dist/gone.mjs does not exist"),
        ('driver = "node-plugin"', "the connector: no connector is named"),
        ('driver = "mcp"', "the connector: no connector is named"),
        ('driver = "mcp"\nmodule = "package.json"', "package.json is not a program"),
        ('driver = "mcp"\ncommand = ["no-such-program-here"]', "no-such-program-here is not on PATH"),
        ('driver = "http-adapter"', "a server: neither a command nor a url"),
        ('driver = "http-adapter"\nurl = "http://192.0.2.7:80"', "not an http address on this machine"),
        ('command = ["{python}", "{root}/driver.py"]', "driver.py does not exist"),
        ('command = ["{root}"]', "is no file that may be executed"),
        ('command = ["{runtime}", "{module}"]\nmodule = "gone.mjs"', "gone.mjs does not exist"),
    ],
)
def test_what_a_run_would_lack(text: str, said: str, tmp_path: Path) -> None:
    """What a driver cannot load or start is missing, by its path or name."""
    (tmp_path / "src").mkdir()
    for name in ("package.json", "plugin.py"):
        (tmp_path / name).write_text("{}")
    assert said in lacking(tmp_path, f"[targets.mine]\n{text}\n")


@pytest.mark.parametrize("driver", ["http-adapter", "mcp"])
def test_server_that_runs_already(driver: str, tmp_path: Path) -> None:
    """A url is found while something listens there, and missing as soon as nothing does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/mcp"
        text = f'[targets.mine]\ndriver = "{driver}"\nurl = "{url}"\n'
        assert needs("mine", tmp_path, text)[0] == Prerequisite(
            "a server that runs already", url, f"nothing listens at {url}: start the server, or fix the setting url"
        )
    assert f"nothing listens at {url}" in lacking(tmp_path, text)


def test_server_of_the_daemon_is_a_note(tmp_path: Path) -> None:
    """The daemon's own server is there once the run has a daemon: nothing can be missing before."""
    need = needs("mine", tmp_path, '[targets.mine]\ndriver = "mcp"\nurl = "{daemon}/mcp"\n')[0]
    assert (need.found, need.note) == ("{daemon}/mcp", True)


def test_program_that_a_connector_installs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is neither built nor on PATH is missing; one on PATH is found with its place."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (need,) = [need for need in needs("codex", tmp_path) if need.what == "the program signet"]
    assert "signet is neither built nor on PATH" in str(need.remedy if need.found is None else "")
    program = tmp_path / "bin" / "signet"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (need,) = [need for need in needs("codex", tmp_path) if need.what == "the program signet"]
    assert need.found == str(program)


@pytest.mark.parametrize(("ending", "runtimes"), [(".js", "bun or node"), (".ts", "bun")])
def test_typescript_asks_for_bun(ending: str, runtimes: str, tmp_path: Path) -> None:
    """A server in TypeScript is run by bun alone where the target knows it, for node takes only some of them."""
    (tmp_path / f"server{ending}").write_text("")
    first = needs("mcp", tmp_path, f'[targets.mcp]\nmodule = "server{ending}"\n')[0]
    assert first.what == f"a runtime: {runtimes}, for server{ending}"


@pytest.mark.parametrize(
    ("face", "module", "setting", "runtimes"),
    [
        ("opencode-1.18.33", "plugin.js", "", "bun or node"),
        ("opencode-1.18.33", "plugin.ts", "", "bun"),
        ("opencode-1.18.33", "plugin.js", 'runtime = "node"', "node"),
        ("pi-0.73", "plugin.js", "", "node"),
        ("pi-0.73", "plugin.ts", "", "bun"),
        ("pi-0.73", "plugin.ts", 'runtime = "node"', "node"),
    ],
)
def test_a_plugin_runs_in_what_its_harness_uses(
    face: str, module: str, setting: str, runtimes: str, tmp_path: Path
) -> None:
    """OpenCode is a program of bun. TypeScript, which pi loads too, is bun's unless the settings say node."""
    (tmp_path / module).write_text("")
    named = f'driver = "node-plugin"\nface = "{face}"\nmodule = "{module}"\n{setting}\n'
    first = needs("mine", tmp_path, f"[targets.mine]\n{named}")[0]
    assert first.what == f"a runtime: {runtimes}, for {module}"


def test_a_plugin_of_an_unknown_harness_lacks_a_runtime_too(tmp_path: Path) -> None:
    """The harness names what runs its plugins."""
    (tmp_path / "plugin.js").write_text("")
    lacking = needs("mine", tmp_path, '[targets.mine]\ndriver = "node-plugin"\nface = "acme-1"\nmodule = "plugin.js"\n')
    assert [need.what for need in lacking if need.found is None] == ["a runtime", "a face"]


def test_typescript_program_asks_for_bun(tmp_path: Path) -> None:
    """So does a program that the connector installs by name."""
    server = tmp_path / "platform" / "daemon" / "src" / "mcp-stdio.ts"
    server.parent.mkdir(parents=True)
    server.write_text("")
    assert "a runtime: bun, for mcp-stdio.ts" in [need.what for need in needs("codex", tmp_path)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("codex", "about that harness: Codex 0.169.0 refuses a hooks file that has top-level"),
        ("openclaw", "about the connector: no token is declared"),
    ],
)
def test_notes_are_told(name: str, said: str, tmp_path: Path) -> None:
    """What is known of harness and connector is told before a run, for it explains verdicts."""
    assert any(f"{need.what}: {need.found}".startswith(said) for need in needs(name, tmp_path) if need.note)
