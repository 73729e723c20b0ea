"""A remedy that installs something names what the kit itself was installed from."""

from __future__ import annotations

import json
from importlib import metadata

import pytest

from signet_conformance import errors
from signet_reference_harness import errors as harness_errors


class Installed(metadata.Distribution):
    """The kit as pip leaves it, with what it says of its source."""

    def __init__(self, direct_url: str | None) -> None:
        self._direct_url = direct_url

    def read_text(self, filename: str) -> str | None:
        return self._direct_url if filename == "direct_url.json" else None

    def locate_file(self, path: object) -> metadata.SimplePath:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("direct_url", "command"),
    [
        (json.dumps({"url": "file:///src/the%20kit", "dir_info": {}}), "pip install '/src/the kit[codings]'"),
        (json.dumps({"url": "file:///kit.whl", "archive_info": {}}), "pip install '/kit.whl[codings]'"),
        (json.dumps({"url": "https://kit.invalid/kit.whl"}), "pip install 'signet-conformance[codings]'"),
        (None, "pip install 'signet-conformance[codings]'"),
        ("torn", "pip install 'signet-conformance[codings]'"),
    ],
)
def test_the_source_of_the_kit_is_named(monkeypatch: pytest.MonkeyPatch, direct_url: str | None, command: str) -> None:
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed(direct_url))
    assert errors.pip_install("codings") == command
    assert harness_errors.pip_install("codings") == command
