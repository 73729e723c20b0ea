"""Facts about the shell of a page: text stays text, data cannot end its block, nothing but the kit's own runs."""

from __future__ import annotations

import io
import json
import re
import sys
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from signet_conformance.engine import judge
from signet_conformance.errors import printable
from signet_conformance.reports import command_lines
from signet_conformance.reports.evidence import Source
from signet_conformance.reports.html import page
from signet_conformance.reports.html.exchange_data import editor_address
from signet_conformance.reports.html.page import MAX_TEXT, Markup, element, embedded, requirement_page, write_page
from signet_conformance.reports.html.report import HtmlReport
from signet_conformance.reports.markdown import inline
from signet_conformance.trace import read
from tests.support.run_endings import ending_of
from tests.support.trace_files import CONFORMING, HEADER, write

ID = "SIG-AGENT-002"


class _Parsed(HTMLParser):
    """What a browser would make of a piece of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.given: dict[str, str | None] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element and what it is given."""
        self.seen.append(tag)
        self.given.update(attrs)

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.seen.append(data)


def parsed(html: str) -> _Parsed:
    """The elements and texts of a piece of HTML."""
    reader = _Parsed()
    reader.feed(html)
    reader.close()
    return reader


@given(st.text(min_size=1, max_size=200))
def test_text_stays_text(value: str) -> None:
    """Whatever an element is given as content or attribute is read as that text, made printable."""
    element_read = parsed(element("p", value, title=value))
    shown = printable(value, MAX_TEXT)
    assert element_read.seen[0] == "p"
    assert "".join(element_read.seen[1:]) == shown
    assert element_read.given == {"title": shown}


@given(st.text(max_size=200))
def test_data_cannot_end_its_block(value: str) -> None:
    """Embedded data is JSON that comes back as it was, and holds neither a tag nor anything but ASCII."""
    block = embedded({value: [value, "</script><!--"]})
    assert json.loads(block) == {value: [value, "</script><!--"]}
    assert block.isascii()
    assert not set("<>&") & set(block)


def test_attributes_without_a_value_stand_alone_or_not_at_all() -> None:
    """True stands for the bare attribute; False and None leave it out; an underscore is a hyphen."""
    assert (
        element("input", checked=True, hidden=False, title=None, data_filter="x") == '<input checked data-filter="x">'
    )
    assert element("p", class_="a") == '<p class="a"></p>'


def test_the_policy_names_the_one_script_and_the_one_style() -> None:
    """The hashes in the policy are those of the script and the style that the page holds."""
    stream = io.StringIO()
    write_page(stream, "t", (), [("s", "S", Markup(""))], ("sessions.js",), [("d", embedded({}))])
    page = stream.getvalue()
    for tag in ("script", "style"):
        (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = b64encode(sha256(inner.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page
    assert "</script" not in page.replace("</script>", "")


@pytest.fixture
def documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package as if it had been installed from a project that names its documentation."""
    folder = tmp_path / "signet_conformance-9.dist-info"
    folder.mkdir()
    links = "Project-URL: Source, https://x.invalid\nProject-URL: Documentation, https://docs.invalid/kit/\n"
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: signet-conformance\nVersion: 9\n{links}")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    command_lines._site.cache_clear()
    yield
    command_lines._site.cache_clear()


@pytest.mark.usefixtures("documented")
def test_a_requirement_is_linked_where_the_documentation_has_an_address() -> None:
    """The address comes from the package's own metadata; each requirement has a page below it."""
    address = f"https://docs.invalid/kit/requirements/{ID}/"
    assert command_lines.page_address(ID) == address
    assert requirement_page(ID) == f'<a href="{address}">{address}</a>'


def test_a_requirement_is_explained_by_a_command_everywhere() -> None:
    """The command works without any address; a rule of somebody's own has neither."""
    assert command_lines.explain_command(ID) == f"signet-conformance explain {ID}"
    assert command_lines.explain_note(ID) == f" (signet-conformance explain {ID})"
    assert command_lines.explain_note("ACME-1") == ""
    assert inline(ID) == ID


def test_the_pages_scripts_share_no_name() -> None:
    """They are one script in the page: a second function of a name would take the place of the first."""
    names = [
        name
        for asset in sorted((Path(page.__file__).parent / "assets").glob("*.js"))
        for name in re.findall(
            r"^(?:async )?(?:function|const|let|class) (\w+)", asset.read_text("utf-8"), re.MULTILINE
        )
    ]
    assert len(names) > 50
    assert sorted(names) == sorted(set(names))


def test_the_head_says_what_was_driven(tmp_path: Path) -> None:
    """Target and daemon stand above the verdicts, each once."""
    header = {**HEADER, "target": "mine"}
    judged = [judge(read(write(tmp_path / name, CONFORMING, header))) for name in ("a.jsonl", "b.jsonl")]
    stream = io.StringIO()
    made = HtmlReport(stream)
    for each in judged:
        made.add(each, {})
    made.close(ending_of(judged, 0))
    head = stream.getvalue().partition("<main")[0]
    assert head.count("mine") == 1
    assert head.count("0.145.7") == 1


def test_a_trace_is_named_from_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The headings of the page have the path that its reader would type."""
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path)
    stream = io.StringIO()
    report = HtmlReport(stream)
    judged = judge(read(write(tmp_path / "runs" / "a.jsonl", CONFORMING)))
    report.add(judged, {})
    report.close(ending_of([judged], 0))
    assert '"file":"runs/a.jsonl"' in stream.getvalue().replace(": ", ":")


@pytest.mark.parametrize(
    ("editor", "address"),
    [
        ("", "vscode://file/a%20b/c.ts:7"),
        ("cursor", "cursor://file/a%20b/c.ts:7"),
        ("idea", "idea://open?file=/a%20b/c.ts&line=7"),
        ("emacs://{file}?at={line}", "emacs://a%20b/c.ts?at=7"),
        ("none", None),
        ("javascript:alert(1)//{file}", None),
        ("data:text/html,x", None),
    ],
)
def test_a_line_is_opened_in_the_editor_of_the_reader(
    monkeypatch: pytest.MonkeyPatch, editor: str, address: str | None
) -> None:
    """One of the table, an address of one's own, or none; never an address that runs something in the page."""
    monkeypatch.setenv("SIGNET_CONFORMANCE_EDITOR", editor)
    assert editor_address(Source("/a b/c.ts", 7)) == address


def test_traces_of_one_folder_are_named_without_it(tmp_path: Path) -> None:
    """On a small screen a long path says little; of several folders it is needed."""
    (tmp_path / "other").mkdir()
    for names, shown in ((("a.jsonl", "b.jsonl"), "a.jsonl"), (("a.jsonl", "other/b.jsonl"), f"{tmp_path}/a.jsonl")):
        stream = io.StringIO()
        made = HtmlReport(stream)
        for name in names:
            made.add(judge(read(write(tmp_path / name, CONFORMING))), {})
        made.close(ending_of((), 0))
        assert f"<bdi>{shown}</bdi>" in stream.getvalue()
