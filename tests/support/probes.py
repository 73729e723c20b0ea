"""Connectors of our own that each host loads whole, so that a connector which a host refuses hides nothing of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.stand_ins import FIXTURES

HERE = FIXTURES / "probes"
_PROGRAMS = {"signet": HERE / "signet.mjs", "signet-mcp": FIXTURES / "mcp_server.mjs"}
_MANIFEST = {
    "id": "signet-memory-openclaw",
    "kind": "memory",
    "contracts": {"tools": ["memory_search", "memory_get"]},
    "configSchema": {"type": "object", "properties": {"daemonUrl": {"type": "string"}}},
}


def write_probe(name: str, folder: Path) -> None:
    """Write the settings of a host's target in a folder, with the probe for its connector."""
    lines = [f"{setting} = {value}" for setting, value in PROBES[name](folder).items()]
    (folder / "signet-conformance.toml").write_text("\n".join([f"[targets.{name}]", *lines, ""]))
    # The settings of no folder above are read.
    (folder / ".git").mkdir()


def _hooks(installer: str) -> Callable[[Path], Mapping[str, str]]:
    def write(folder: Path) -> Mapping[str, str]:
        for program, path in _PROGRAMS.items():
            # A program's place is below the folder of the settings.
            (folder / f"{program}.mjs").symlink_to(path)
        places = ", ".join(f'{program} = [{{path = "{program}.mjs"}}]' for program in _PROGRAMS)
        return {"module": json.dumps(str(HERE / installer)), "programs": f"{{{places}}}"}

    return write


def _module(plugin: str) -> Callable[[Path], Mapping[str, str]]:
    def write(folder: Path) -> Mapping[str, str]:
        return {"module": json.dumps(str(_leading_to(folder / "probe.mjs", plugin)))}

    return write


def _leading_to(file: Path, plugin: str) -> Path:
    """A module that may be copied anywhere: it exports what a probe's does."""
    file.write_text(f"export {{ default }} from {json.dumps(str(HERE / plugin))};\n")
    return file


def _openclaw(folder: Path) -> Mapping[str, str]:
    package = folder / "probe"
    package.mkdir()
    (package / "openclaw.plugin.json").write_text(json.dumps(_MANIFEST))
    about = {"name": "probe", "version": "1.0.0", "type": "module", "openclaw": {"extensions": ["./index.mjs"]}}
    (package / "package.json").write_text(json.dumps(about))
    _install_with("openclaw", "openclaw_installer.mjs", folder)
    return {"module": json.dumps(str(_leading_to(package / "index.mjs", "openclaw.mjs")))}


def _hermes(folder: Path) -> Mapping[str, str]:
    place = _install_with("hermes-agent", "hermes_installer.mjs", folder)
    provider = place.parent / "provider"
    provider.mkdir()
    (provider / "plugin.yaml").write_text("name: signet\nversion: 1.0.0\ndescription: a probe\n")
    # Hermes looks for the name MemoryProvider in the text of a plugin.
    (provider / "__init__.py").write_text(
        '"""A MemoryProvider."""\nimport importlib.util\n'
        f'_spec = importlib.util.spec_from_file_location("hermes_probe", {str(HERE / "hermes_probe.py")!r})\n'
        "_probe = importlib.util.module_from_spec(_spec)\n"
        "_spec.loader.exec_module(_probe)\nregister = _probe.register\n"
    )
    return {"module": json.dumps(str(provider / "__init__.py"))}


def _install_with(name: str, installer: str, folder: Path) -> Path:
    """Put an installer where the program's profile looks for one."""
    place = folder / "integrations" / name / "connector" / "dist" / "index.js"
    place.parent.mkdir(parents=True)
    (place.parent / "package.json").write_text('{"type": "module"}')
    shutil.copy(HERE / installer, place)
    return place


PROBES: Mapping[str, Callable[[Path], Mapping[str, str]]] = {
    "claude-code": _hooks("claude_code.mjs"),
    "codex": _hooks("codex.mjs"),
    "hermes-agent": _hermes,
    "oh-my-pi": _module("pi.mjs"),
    "openclaw": _openclaw,
    "opencode": _module("opencode.mjs"),
    "pi": _module("pi.mjs"),
}
"""Each program that can be launched, with what writes its probe and gives the settings of its target."""
