"""Install a connector into a home; read what was installed there: memory server, plugin, and what its host loads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

from signet_conformance.drivers.hosts.hook_settings import plugin_servers
from signet_conformance.drivers.hosts.protocol import NotLoadedError, Skipped, write_files
from signet_conformance.files import parse_file
from signet_conformance.files.json_values import fill_in, member_of, merge, object_in

INSTALLED = ".signet-conformance-installed"
"""The file in a home that says that the connector's installer has run there."""
INSTALL_TIMEOUT_S = 60
Files = Mapping[str, Any]
"""Path below a home to content: the value of a JSON or TOML file, the text of any other one."""
_IDENTITY = ("IDENTITY.md", "USER.md", "SOUL.md", "MEMORY.md", "AGENTS.md")


@dataclass(frozen=True, slots=True)
class Installer:
    """The connector's own installer: the command that runs it, its module, and the options that its setup passes to it.

    `told_daemon`: whether the installer gets the daemon's address, to write it into what it installs. Without it, what
    it installs takes the address from the program's environment.
    """

    command: Sequence[str]
    module: str
    options: Mapping[str, Any] = field(default_factory=dict)
    told_daemon: bool = False

    def run(self, env: Mapping[str, str]) -> None:
        """Install in the user's environment. Raises NotLoadedError, with the installer's own words, if it fails."""
        agents = Path(env.get("SIGNET_PATH") or Path(env["HOME"]) / ".agents")
        agents.mkdir(parents=True, exist_ok=True)
        for name in _IDENTITY:
            (agents / name).touch()
        try:
            done = subprocess.run(
                [*self.command, self.module, str(agents), *([json.dumps(self.options)] if self.options else [])],
                env={name: value for name, value in env.items() if self.told_daemon or name != "SIGNET_DAEMON_URL"},
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                stderr=subprocess.PIPE,
                timeout=INSTALL_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NotLoadedError(f"the connector's installer did not end within {INSTALL_TIMEOUT_S} s") from None
        errors = done.stderr.decode("utf-8", "replace")
        sys.stderr.write(errors)
        if done.returncode != 0:
            why = next(
                (line.strip() for line in errors.splitlines() if "Error: " in line or line.startswith("error: ")),
                errors.strip()[-300:],
            )
            raise NotLoadedError(f"the connector's installer ended with status {done.returncode}: {why}")


def mcp_command(home: Path, face: Mapping[str, Any]) -> tuple[Sequence[str], Mapping[str, str]]:
    """Return the command and the variables with which the harness starts the connector's memory server.

    Raises Skipped if no server is installed, or if it is not a program that the harness starts.
    """
    try:
        data = _installed_server(home, face)
    except FileNotFoundError:
        raise Skipped(f"no memory server is installed: there is no {face['mcp']['file']}") from None
    except (OSError, ValueError, RecursionError) as failure:
        raise Skipped(f"no memory server is installed: {failure}") from None
    if not isinstance(data, dict) or "command" not in data:
        raise Skipped("no installed memory server is one that the harness starts")
    command, more, env = data["command"], data.get("args", []), data.get("env", {})
    if not isinstance(command, str | list) or not isinstance(more, list) or not isinstance(env, dict):
        where = Path(face["mcp"]["file"]).name
        raise Skipped(f"the memory server in {where} is not a command, a list args and a table env")
    words = command if isinstance(command, list) else [command]
    return [*map(str, words), *map(str, more)], {name: str(value) for name, value in env.items()}


def offered_tools(home: Path, face: Mapping[str, Any], tools: Mapping[str, Any]) -> Mapping[str, Any]:
    """The tools of the memory server that the harness's settings allow the model."""
    server = object_in(found_server(home, face))
    enabled, disabled = (server.get(face["mcp"].get(name)) for name in ("enabled_tools", "disabled_tools"))
    kept = tools if not isinstance(enabled, list) else {name: tools[name] for name in tools if name in enabled}
    return kept if not isinstance(disabled, list) else {name: kept[name] for name in kept if name not in disabled}


def _installed_server(home: Path, face: Mapping[str, Any]) -> Any:
    """The entry of the connector's memory server in the settings, or else in an enabled plugin; None without one.

    Raises OSError, ValueError or RecursionError if the settings cannot be read and no plugin has it.
    """
    places = face["mcp"]
    of_plugin = plugin_servers(home, face).get(places["members"][-1])
    try:
        data = parse_file(home / places["file"])
    except (OSError, ValueError, RecursionError):
        if of_plugin is None:
            raise
        return of_plugin
    found = member_of(data, *places["members"])
    return of_plugin if found is None else found


def found_server(home: Path, face: Mapping[str, Any]) -> Any:
    """The settings of the connector's memory server, found as the harness finds it; None without one."""
    try:
        return _installed_server(home, face)
    except (OSError, ValueError, RecursionError):
        return None


def refused_servers(home: Path, face: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """A row for `installed` about the file of memory servers, if the harness refuses its content."""
    path = home / face["mcp"]["file"]
    try:
        parse_file(path)
        server = _installed_server(home, face)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, RecursionError) as failure:
        return ({"file": path.name, "accepted": False, "words": f"{failure}"},)
    words = face["mcp"].get("no_text")
    command = server.get("command", "") if isinstance(server, dict) else ""
    if words is None or isinstance(command, str):
        return ()
    where = ".".join([*face["mcp"]["members"], "command"])
    return ({"file": path.name, "accepted": False, "words": f"{words} (in {where})"},)


def prepare(home: Path, options: Mapping[str, Any], known: Mapping[str, str], env: Mapping[str, str]) -> None:
    """Write the program's settings and install the connector, unless this was done in this home before.

    Raises NotLoadedError when the connector's installer fails, or leaves no file that its setup changes.
    """
    if (home / INSTALLED).exists():
        return
    write_files(home, fill_in(options["settings"], known))
    install_connector(home, options, known, env)
    (home / INSTALLED).touch()


def install_connector(home: Path, options: Mapping[str, Any], known: Mapping[str, str], env: Mapping[str, str]) -> None:
    """Run the connector's installer, or put its file into place, and change its settings as the profile says.

    Raises NotLoadedError when the installer fails, or leaves no file that its setup changes.
    """
    setup = options["setup"]
    if options["installer"] is not None:
        Installer(options["install"], options["installer"], setup["options"], setup["told_daemon"]).run(env)
    else:
        place = home / setup["place"]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(Path(options["module"]).read_bytes())
    for path, changes in fill_in(setup["then"], known).items():
        file = home / path
        try:
            settings = json.loads(file.read_bytes())
        except (OSError, ValueError) as failure:
            raise NotLoadedError(f"the connector's installer left no {path} that can be read: {failure}") from None
        file.write_text(json.dumps(merge(settings, changes), indent=2), "utf-8")


_CODE = (".cjs", ".cts", ".js", ".mjs", ".mts", ".py", ".ts")


def plugin_rows(
    home: Path,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    face: Mapping[str, Any],
    manifest: Mapping[str, Any],
) -> Iterator[Mapping[str, Any]]:
    """Whether the harness loads the plugin whose installer changed the files of a home, as rows for `installed`.

    There is no row if the installer wrote no code, named no plugin and left the settings alone. A row with `events`
    applies to a plugin that registers one of them.
    """
    loading = face.get("registry", {}).get("loading")
    if loading is None:
        return
    written = [path for path, content in after.items() if before.get(path) != content]
    settings = [path for path in loading["settings"] if path in written]
    for path in settings:
        yield from _settings_objection(path, after[path], loading.get("rules", ()), manifest)
    code = [path for path in written if path.endswith(_CODE)]
    known = {each for path in loading["settings"] for each in _plugins_in(before.get(path), loading)}
    named = [(path, each) for path in settings for each in _plugins_in(after[path], loading) if each not in known]
    unread = any(isinstance(after[path], str) for path in settings)
    if "found" not in loading or unread or not (code or named):
        return
    found = [path for path in written if any(PurePosixPath(path).match(pattern) for pattern in loading["found"])]
    missing = [(path, each) for path, each in named if not _is_there(home / path, each)]
    if found or len(missing) < len(named):
        yield {"file": found[0] if found else named[0][0], "accepted": True}
    elif missing:
        path, each = missing[0]
        yield {"file": path, "accepted": False, "words": f"it names the plugin {each}, but that file does not exist"}
    else:
        yield {"file": code[0], "accepted": False, "words": loading["not_found"]}


def objections(rows: Sequence[Mapping[str, Any]], registered: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The rows for `installed` that apply to a plugin with these events."""
    for row in rows:
        event = next((each for each in row.get("events", ()) if each in registered), None)
        if event is not None:
            yield {"file": row["file"], "accepted": False, "words": row["words"].replace("{event}", event)}
        elif "events" not in row:
            yield row


def _settings_objection(
    file: str, settings: Any, rules: Sequence[Mapping[str, Any]], manifest: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    # Imported here: only settings that an installer wrote are checked against schemas.
    import jsonschema_rs

    known = {"id": manifest["id"]} if isinstance(manifest.get("id"), str) else {}
    accepted = True
    for rule in rules:
        schema = fill_in(rule["schema"], known)
        applies = rule.get("kind", manifest.get("kind")) == manifest.get("kind") and "{id}" not in json.dumps(schema)
        if not applies or jsonschema_rs.is_valid(schema, settings):
            continue
        where = f"{file}: {rule['at']}" if "at" in rule else file
        row = {"file": fill_in(where, known), "accepted": False, "words": fill_in(rule["words"], known)}
        if "events" in rule:
            yield {**row, "events": rule["events"]}
            continue
        accepted = False
        yield row
        if "at" not in rule:
            return
    if rules and accepted:
        yield {"file": file, "accepted": True}


def _plugins_in(settings: Any, loading: Mapping[str, Any]) -> Sequence[str]:
    """The plugins that the settings name: a path or a package each, alone or before its options."""
    lists = [settings.get(name) for name in loading.get("named", ())] if isinstance(settings, dict) else []
    rows = [row for each in lists if isinstance(each, list) for row in each]
    firsts = [row[0] if isinstance(row, list) and row else row for row in rows]
    return [each for each in firsts if isinstance(each, str)]


def _is_there(settings: Path, named: str) -> bool:
    """Whether a plugin that the settings name exists; a package may come from anywhere, so it counts as existing."""
    if named.startswith("file:"):
        return Path(unquote(urlsplit(named).path)).exists()
    return not named.startswith((".", "/")) or (settings.parent / named).exists()
