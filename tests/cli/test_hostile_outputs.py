"""Hostile content of a trace is only shown, in every report and on a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt

from signet_conformance.reports import FORMATS, Format
from tests.support.command_line import Invoke
from tests.support.every_format import asking_for
from tests.support.hostile import FORMULA, HOSTILE, MOST, hostile_trace
from tests.support.inner_pytest import run
from tests.support.report_files import report


class _Page(HTMLParser):
    """The content of a page: its elements, what could run, and what could be requested from the network."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.dangers: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that could do something."""
        self.tags.add(tag)
        given = {name: value or "" for name, value in attrs}
        self.dangers += [
            f"{tag} {name}" for name in given if name.startswith("on") or name in ("src", "style", "srcdoc")
        ]
        self.dangers += [f"href {given['href']}"] if "href" in given and not given["href"].startswith("#") else []
        if tag == "script" and "type" not in given:
            self.tags.add("running script")


def harmless_text(text: str) -> None:
    """No character that a terminal obeys or that reverses text, no line that is a formula, no excessive length."""
    assert {c for c in text if not c.isprintable()} <= {"\n"}
    assert len(text) < MOST
    assert not [line for line in text.split("\n") if line.startswith("=HYPER")]


def harmless_json(text: str) -> None:
    """Like text, and it is JSON."""
    harmless_text(text)
    json.loads(text)


def harmless_sarif(text: str) -> None:
    """Like JSON, with no message that makes a link or a placeholder."""
    harmless_json(text)
    messages = re.findall(r'"text":"((?:[^"\\]|\\.)*)"', text)
    assert messages
    assert not [message for message in messages if "](" in message or re.search(r"(?<!\{)(\{\{)*\{\d", message)]


def harmless_markdown(text: str) -> None:
    """Like text; as Markdown it has no HTML, link or image, and no mention of a user outside of code."""
    harmless_text(text)
    tokens = [
        child
        for token in MarkdownIt("commonmark").enable("table").parse(text)
        for child in (token, *(token.children or ()))
    ]
    assert not {"html_block", "html_inline", "link_open", "image"} & {token.type for token in tokens}
    plain = " ".join(token.content for token in tokens if token.type == "text")
    assert not re.search(r"owned|javascript|@|#\d", plain)


def harmless_page(text: str) -> None:
    """Like text; only the kit's own elements, attributes and addresses, and one script, which the policy names."""
    harmless_text(text)
    page = _Page()
    page.feed(text)
    assert not page.dangers
    assert not page.tags & {"img", "svg", "iframe", "object", "embed", "link", "base", "form"}
    assert text.count("<script>") == 1
    assert "default-src 'none'; script-src 'sha256-" in unescape(text)
    assert not re.search(r"<t[dh]\b[^>]*>(<[^>]*>)*=", text), "a cell is a formula"


def harmless_xml(text: str) -> None:
    """Like text, and XML without an element or attribute that runs."""
    harmless_text(text)
    tree = ET.fromstring(text)  # noqa: S314  our own output
    assert not [e for e in tree.iter() if "script" in e.tag or any(name.startswith("on") for name in e.attrib)]


Check = Callable[[str], None]
CHECK, SHOW, DIFF, MATRIX = (
    ("check", "a.jsonl"),
    ("show", "a.jsonl"),
    ("diff", "a.jsonl", "b.jsonl"),
    ("matrix", "r.json"),
)
HARMLESS: dict[str, Check] = {
    "json": harmless_json,
    "markdown": harmless_markdown,
    "sarif": harmless_sarif,
    "html": harmless_page,
    "junit": harmless_xml,
}
"""What is harmless in each format of a run's report. A new format says it here, or the tests of it fail."""


def harmless_report(kind: Format) -> Check:
    """The check for a format."""
    assert kind.name in HARMLESS, f"say in HARMLESS what is harmless in a {kind.name} report"
    return HARMLESS[kind.name]


OUTPUTS: dict[str, tuple[tuple[str, ...], str | None, Check]] = {
    "text": (CHECK, None, harmless_text),
    "text-all": ((*CHECK, "--all"), None, harmless_text),
    "show": (SHOW, None, harmless_text),
    "show-bodies": ((*SHOW, "--bodies"), None, harmless_text),
    "show-exchange": ((*SHOW, "--exchange", "3"), None, harmless_text),
    "diff": ((*DIFF, "--all"), None, harmless_text),
    "diff-json": ((*DIFF, "--json"), None, harmless_json),
    "diff-html": ((*DIFF, "--html", "out"), "out", harmless_page),
    "matrix": (MATRIX, None, harmless_text),
    "matrix-json": ((*MATRIX, "--json"), None, harmless_json),
    "matrix-html": ((*MATRIX, "--html", "out"), "out", harmless_page),
    "badge-svg": ((*MATRIX, "--badge", "out.svg", "--connector-version", FORMULA + HOSTILE), "out.svg", harmless_xml),
    "badge-json": ((*MATRIX, "--badge", "out.json", "--connector-version", HOSTILE), "out.json", harmless_json),
}


@pytest.mark.parametrize("kind", FORMATS.values(), ids=FORMATS)
def test_hostile_content_is_only_shown_in_every_format(invoke: Invoke, tmp_path: Path, kind: Format) -> None:
    """Script tags, escapes, bidirectional marks, ten megabytes, formulas and links are shown as text, and cut."""
    hostile_trace(tmp_path / "a.jsonl")
    words = asking_for(kind, "out")
    done = invoke(*CHECK, "--coverage", *words)
    assert done.exit_code == 1, done.output
    harmless_text(done.stdout)
    harmless_text(done.stderr)
    harmless_report(kind)((tmp_path / "out").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", OUTPUTS)
def test_hostile_content_is_only_shown(invoke: Invoke, tmp_path: Path, name: str) -> None:
    """Every other command, and the text of `check`, shows hostile content as text, and cuts it."""
    words, file, harmless = OUTPUTS[name]
    if words[0] == "matrix":
        bad = FORMULA + HOSTILE
        report(tmp_path / "r.json", target=bad, observed=["health", bad], declared=["health", bad])
    else:
        hostile_trace(tmp_path / "a.jsonl")
        hostile_trace(tmp_path / "b.jsonl", "and more")
    done = invoke(*words)
    assert done.exit_code in (0, 1), done.output
    harmless_text(done.stderr)
    if file is None:
        harmless(done.stdout)
    else:
        harmless_text(done.stdout)
        harmless((tmp_path / file).read_text(encoding="utf-8"))


@pytest.mark.parametrize("kind", FORMATS.values(), ids=FORMATS)
def test_hostile_content_is_only_shown_in_the_reports_of_pytest(hostile_run: Path, kind: Format) -> None:
    """The reports of a pytest run are as harmless, in every format."""
    harmless_report(kind)((hostile_run / "report" / kind.file).read_text(encoding="utf-8"))


def test_hostile_content_is_only_shown_in_what_pytest_leaves(hostile_run: Path) -> None:
    """The JUnit file of a pytest run is as harmless."""
    harmless_xml((hostile_run / "junit.xml").read_text(encoding="utf-8"))


def test_hostile_content_is_only_shown_by_pytest(hostile_run: Path) -> None:
    """The output of a pytest run is as harmless."""
    harmless_text((hostile_run / "printed").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a pytest run that judged a hostile trace."""
    folder = tmp_path_factory.mktemp("hostile")
    hostile_trace(folder / "a.jsonl")
    words: list[Any] = ["--signet-conformance", "--signet-trace", "a.jsonl", "--signet-report", "report"]
    done = run(folder, "-p", "no:cacheprovider", "--junitxml", "junit.xml", "-ra", *words)
    assert done.status == 1, done.everything
    (folder / "printed").write_text(done.everything, encoding="utf-8")
    return folder
