"""Which engine carries a recording, and what is said when it is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from signet_conformance.errors import UsageError
from signet_recording_proxy.__main__ import main
from signet_recording_proxy.engines import chosen
from signet_recording_proxy.upstream import Upstream

PLAIN, TLS = "http://127.0.0.1:1", "https://127.0.0.1:1"


@pytest.fixture
def without_mitmproxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after an install without extras."""
    monkeypatch.setitem(sys.modules, "mitmproxy", None)


@pytest.mark.parametrize(
    ("asked", "url", "engine"),
    [("auto", PLAIN, "lean"), ("auto", TLS, "mitmproxy"), ("lean", PLAIN, "lean"), ("mitmproxy", PLAIN, "mitmproxy")],
)
def test_the_lean_engine_unless_more_is_needed(asked: str, url: str, engine: str) -> None:
    """Left to itself the recorder takes mitmproxy for TLS alone."""
    assert chosen(asked, Upstream(url)) == engine


@pytest.mark.usefixtures("without_mitmproxy")
@pytest.mark.parametrize(("asked", "url"), [("auto", TLS), ("mitmproxy", PLAIN)])
def test_an_engine_that_is_not_installed(asked: str, url: str) -> None:
    """What is missing is said, with the line that installs it."""
    with pytest.raises(UsageError, match="mitmproxy") as refusal:
        chosen(asked, Upstream(url))
    assert refusal.value.remedy == 'pip install "signet-conformance[mitmproxy]"'


@pytest.mark.usefixtures("without_mitmproxy")
def test_the_lean_engine_needs_no_mitmproxy() -> None:
    """An install without extras records."""
    assert chosen("auto", Upstream(PLAIN)) == "lean"


def test_tls_is_too_much_for_the_lean_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Asked for by name with an https daemon: exit 2, the engine that can do it, and no trace."""
    out = tmp_path / "t.jsonl"
    assert main(["--engine", "lean", "--upstream", TLS, "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert "plain HTTP" in said
    assert "--engine mitmproxy" in said
    assert not out.exists()
