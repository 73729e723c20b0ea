"""The files below a home that a program reads before it starts: its own settings, and what the connector adds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signet_conformance.drivers.hosts.installed import INSTALLED, install
from signet_conformance.drivers.hosts.protocol import NotLoadedError
from signet_conformance.files.json_values import merge


def prepare(home: Path, options: Mapping[str, Any], known: Mapping[str, str], env: Mapping[str, str]) -> None:
    """Write the program's settings, and have the connector installed, unless this home has them.

    Raises NotLoadedError when the connector's installer fails, or leaves no file that its setup goes on with.
    """
    if (home / INSTALLED).exists():
        return
    for path, content in fill_in(options["settings"], known).items():
        file = home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), "utf-8")
    install_connector(home, options, known, env)
    (home / INSTALLED).touch()


def install_connector(home: Path, options: Mapping[str, Any], known: Mapping[str, str], env: Mapping[str, str]) -> None:
    """Run the connector's installer, or put its file into place, and change its settings as the profile says.

    Raises NotLoadedError when the installer fails, or leaves no file that its setup goes on with.
    """
    if options["installer"] is not None:
        told, more = options["installer_told_daemon"], options["installer_options"]
        install(options["install"], options["installer"], env, remote=told, options=more)
    else:
        place = home / options["place"]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(Path(options["module"]).read_bytes())
    for path, over in fill_in(options["then"], known).items():
        file = home / path
        try:
            left = json.loads(file.read_bytes())
        except (OSError, ValueError) as failure:
            raise NotLoadedError(f"the connector's installer left no {path} that can be read: {failure}") from None
        file.write_text(json.dumps(merge(left, over), indent=2), "utf-8")


def fill_in(value: Any, known: Mapping[str, str]) -> Any:
    """Replace the placeholders in a value."""
    if isinstance(value, str):
        for name, meant in known.items():
            value = value.replace(f"{{{name}}}", meant)
        return value
    if isinstance(value, dict):
        return {fill_in(name, known): fill_in(each, known) for name, each in value.items()}
    return [fill_in(each, known) for each in value] if isinstance(value, list) else value
