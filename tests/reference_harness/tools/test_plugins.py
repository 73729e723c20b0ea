"""Tools of others, by entry point and by configuration."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signet_reference_harness.errors import ConfigError
from signet_reference_harness.tools.registry import installed_tools, tool_of

MODULE = """
class Weather:
    name = "weather"
    description = "Tells the weather."
    input_schema = {"type": "object"}
    run_before_generation = False
    def execute(self, arguments, context):
        return "rain"

weather = Weather()
class Nameless(Weather):
    name = ""
class Idle:
    name = description = "x"
def broken():
    raise OSError("no key")
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package of a stranger with a tool and its entry point."""
    (tmp_path / "strange_tools.py").write_text(MODULE)
    info = tmp_path / "strange_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[signet_reference_harness.tools]\nweather = strange_tools:Weather\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("strange_tools", None)


@pytest.mark.usefixtures("installed")
def test_an_installed_package_brings_its_tool() -> None:
    """An entry point of the group is a tool, or makes one."""
    assert [tool.name for tool in installed_tools()] == ["weather"]


@pytest.mark.usefixtures("installed")
def test_a_configured_place_is_a_tool() -> None:
    """A class is made, an object is taken as it is."""
    assert [tool.name for tool in (tool_of(f"strange_tools:{name}", "--tool") for name in ("Weather", "weather"))] == [
        "weather"
    ] * 2


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("place", "complaint"),
    [
        ("weather", "is not of the form module:attribute"),
        ("no_such_module:tool", "cannot be made from no_such_module:tool: ModuleNotFoundError"),
        ("strange_tools:missing", "missing: AttributeError"),
        ("strange_tools:broken", "broken: OSError: no key"),
        ("strange_tools:Nameless", "lacks name"),
        ("strange_tools:Idle", "lacks input_schema, execute"),
    ],
)
def test_a_place_that_holds_no_tool_is_named(place: str, complaint: str) -> None:
    """The error says which place, and what is wrong there."""
    with pytest.raises(ConfigError) as refused:
        tool_of(place, "--tool")
    assert refused.value.message.startswith("--tool: ")
    assert place in refused.value.message
    assert complaint in refused.value.message
    assert refused.value.remedy
