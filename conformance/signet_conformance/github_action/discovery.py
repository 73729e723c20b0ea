"""Which connector a folder holds: a target of its settings, or a shipped target whose files are there."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from signet_conformance import targets
from signet_conformance.github_action.language import Language, language_of, manifest_name
from signet_conformance.targets.files import first_of, package_name
from signet_conformance.targets.settings import read_settings


@dataclass(frozen=True, slots=True)
class Connector:
    """The connector of a folder. `settings` says that the repository describes it already.

    `known` says that a shipped profile does; without either, it is a connector that has no driver yet, which is then
    written in its `language`.
    """

    name: str
    settings: bool = False
    known: bool = False
    language: Language | None = None


def discover(folder: Path, wanted: str | None = None) -> Sequence[Connector]:
    """The connectors that `folder` holds, or the one `wanted` by name; at least one."""
    own = sorted(read_settings(folder).targets)
    if wanted is not None:
        known = wanted in own or wanted in targets.names()
        return [Connector(wanted, wanted in own, wanted in targets.names(), None if known else language_of(folder))]
    if own:
        return [Connector(name, settings=True, known=name in targets.names()) for name in own]
    shipped = [Connector(name, known=True) for name in targets.names() if _is_here(name, folder)]
    return shipped or [Connector(_name_of(folder), language=language_of(folder))]


def _is_here(name: str, folder: Path) -> bool:
    places = targets.load(name, folder).profile.files
    if package_name(folder) in {place.package for place in places} - {None}:
        return True
    file = first_of(targets.load(name, folder), places)
    # Looked for upwards too, where a repository of many connectors holds the others.
    return file is not None and file.is_relative_to(folder)


def _name_of(folder: Path) -> str:
    """A name for a connector that nobody knows: that of its manifest or its folder, as a target may be called."""
    name = re.sub(r"[^a-z0-9]+", "-", (manifest_name(folder) or folder.name).lower()).strip("-")[:64].strip("-")
    return "connector" if not name or name in targets.names() else name


def settings_text(connector: Connector) -> str:
    """The settings file of a connector: what a shipped profile leaves open, or a stub with a command to fill in."""
    if connector.language is None:
        return _KNOWN.format(name=connector.name)
    command = ", ".join(json.dumps(word) for word in connector.language.command)
    return _UNKNOWN.format(name=connector.name, command=command, driver=connector.language.driver)


_KNOWN = """\
# What the kit cannot know of this connector. Shown by: signet-conformance targets --doctor {name}
[targets.{name}]
# The file that the harness loads, from this folder; without it the places that the profile names are looked at.
# module = "dist/index.js"
# Agents that a session can be given, at least two where the connector tells them apart.
# agents = ["atlas-agent", "beacon-agent"]
"""

_UNKNOWN = """\
# The connector, as the kit drives it: a program that plays its harness on standard input and output.
# The messages are one JSON object a line, described by the protocol signet-driver/1; {driver} answers them.
[targets.{name}]
command = [{command}]
# The name that the connector sends as harness.
harness = "{name}"
agents = ["atlas-agent", "beacon-agent"]
# How long the connector waits for the daemon, in seconds.
bounds_s = {{start = 5.0, prompt = 2.0}}
# Operations that it performs. Declared but absent fails, seen but undeclared warns.
capabilities = ["health", "session-start", "user-prompt-submit", "session-end"]
"""
