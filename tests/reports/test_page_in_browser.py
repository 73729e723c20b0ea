"""Facts about the HTML pages in a real browser: nothing foreign runs, nothing is fetched, all of it can be reached."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from signet_conformance.cli.commands import commands
from signet_conformance.engine import JudgedTrace
from signet_conformance.reports.html.report import HtmlReport
from signet_conformance.trace import read
from tests.support.browser import ENTER, TAB, Browser, browser, missing
from tests.support.bun import axe
from tests.support.hostile import hostile_trace
from tests.support.report_files import report
from tests.support.run_endings import ending_of
from tests.support.trace_files import BREACHING, CONFORMING, write

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"no browser: {missing()}")

EXCHANGES = 50_000
MOST_TABS = 80
AXE = axe()
PAGES = ("report", "diff", "matrix", "index", "openclaw", "audit", "hostile")

CONTRAST = """
const light = (c) => c.map((v) => v / 255).map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
const ground = (e) => { for (; e; e = e.parentElement) {
  const c = numbers(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c.slice(0, 3); }
  return [255, 255, 255]; };
const found = [];
for (const e of document.body.querySelectorAll("*")) {
  if (!e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
  const style = getComputedStyle(e), drawn = e.closest("svg");
  const a = light(numbers(drawn ? style.fill : style.color).slice(0, 3)), b = light(ground(drawn || e));
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  if (ratio < 4.5) found.push([e.tagName, e.className, e.textContent.slice(0, 40), ratio]);
}
return found;
"""
OUTLINE = """
const levels = [...document.querySelectorAll("h1,h2,h3,h4,h5,h6")].filter((h) => h.checkVisibility())
  .map((h) => Number(h.tagName[1]));
const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
return {landmarks: ["header", "nav", "main", "footer"].map((tag) => document.querySelectorAll("body > " + tag).length),
  skipped: levels.filter((level, i) => level > (levels[i - 1] || 0) + 1),
  repeated: ids.filter((id, i) => ids.indexOf(id) !== i),
  lang: document.documentElement.lang, title: document.title,
  unlabelled: [...document.querySelectorAll("table")].filter((t) => !t.caption).length};
"""
OPEN_ALL = """
document.querySelectorAll("button[data-trace]").forEach((b) => b.click());
const seen = [...document.querySelectorAll("#session-view button[data-seq]")].map((b) => { b.click();
  document.querySelectorAll("#exchange-view details").forEach((d) => {
    d.open = true; d.dispatchEvent(new Event("toggle")); });
  return document.querySelectorAll("#exchange-view pre").length; });
document.querySelectorAll("details").forEach((d) => { d.open = true; });
return seen.reduce((sum, n) => sum + n, 0);
"""


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    """A browser for all facts here."""
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page of every kind."""
    folder = tmp_path_factory.mktemp("pages")
    write(folder / "a.jsonl", BREACHING)
    write(folder / "b.jsonl", CONFORMING)
    hostile_trace(folder / "hostile.jsonl")
    report(
        folder / "r.json", observed=["health", "memory-get"], declared=["health", "session-start"], SIG_AGENT_001="FAIL"
    )

    def run(*words: str) -> None:
        done = CliRunner().invoke(commands, [str(folder / word) if "." in word else word for word in words])
        assert done.exit_code in (0, 1), done.output

    run("check", "a.jsonl", "b.jsonl", "--coverage", "--html", "report.html")
    run("check", "hostile.jsonl", "--html", "hostile.html")
    run("diff", "a.jsonl", "b.jsonl", "--html", "diff.html")
    run("matrix", "r.json", "r.json", "--html", "matrix.html")
    done = CliRunner().invoke(
        commands, ["audit", str(folder / "a.jsonl"), f"--out={folder / 'fleet'}", f"--html={folder / 'audit.html'}"]
    )
    assert done.exit_code == 1, done.output
    # The first page of a site, index.html, and that of its connector.
    done = CliRunner().invoke(commands, ["matrix", str(folder / "r.json"), "--site", str(folder)])
    assert done.exit_code == 0, done.output
    return folder


each_page = pytest.mark.parametrize("name", PAGES, scope="module")
"""One page after the other, so that it is opened for all of its tests."""


def unfolded(window: Browser, page: Path) -> Browser:
    """Open a page with all that it holds unfolded, unless it stands so already."""
    if window.script("return window.unfolded && document.location.href") != page.resolve().as_uri():
        window.open(page).script(f"window.unfolded = true; {OPEN_ALL}")
    return window


@each_page
def test_a_page_asks_for_nothing_and_complains_of_nothing(window: Browser, pages: Path, name: str) -> None:
    """Opened from its file, with all that it holds unfolded, it makes no request and the console stays empty."""
    window.complaints()
    window.requests()
    window.open(pages / f"{name}.html").script(OPEN_ALL)
    assert window.complaints() == []
    assert window.requests() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@each_page
def test_text_stands_out_from_its_ground(window: Browser, pages: Path, name: str, *, dark: bool) -> None:
    """Every text that can be seen has the contrast of WCAG AA, in light and dark, drawn ones too."""
    window.resize(1400, 1000, dark=dark)
    assert unfolded(window, pages / f"{name}.html").script(CONTRAST) == []


@pytest.mark.parametrize("width", [380, 1400])
@each_page
def test_a_page_fits_its_window(window: Browser, pages: Path, name: str, width: int) -> None:
    """Narrow or wide, nothing makes the page itself scroll sideways; a wide table scrolls by itself."""
    window.resize(width, 1000)
    shown = unfolded(window, pages / f"{name}.html")
    assert shown.script("return document.documentElement.scrollWidth <= window.innerWidth")


@each_page
def test_a_page_can_be_read_aloud(window: Browser, pages: Path, name: str) -> None:
    """It has one of each landmark, headings without a gap, captions, no id twice, and a name for every control."""
    outline = unfolded(window, pages / f"{name}.html").script(OUTLINE)
    assert (outline["landmarks"], outline["lang"]) == ([1, 1, 1, 1], "en")
    assert (outline["skipped"], outline["repeated"], outline["unlabelled"]) == ([], [], 0)
    assert outline["title"].startswith("Signet conformance")
    assert window.controls_without_a_name() == []


@pytest.mark.skipif(AXE is None, reason="axe-core is not installed beside bun")
@pytest.mark.parametrize(("width", "dark"), [(380, False), (800, True), (1400, False)])
@pytest.mark.parametrize("name", [name for name in PAGES if name not in ("report", "hostile")], scope="module")
def test_axe_finds_nothing(window: Browser, pages: Path, name: str, width: int, *, dark: bool) -> None:
    """axe-core has nothing to say of a page unfolded; of the report the viewer's tests ask.

    What depends on the width does not depend on the colours, and each of both stands here; the contrast of all text is
    looked at above, in light and in dark.
    """
    assert AXE is not None
    window.resize(width, 1000, dark=dark)
    assert unfolded(window, pages / f"{name}.html").axe(AXE) == []


def tabbed_to(window: Browser, selector: str, *, back: bool = False) -> None:
    """Press Tab, or Shift and Tab, until what has the focus is such an element; fail when that takes too many."""
    for _ in range(MOST_TABS):
        window.press(TAB, shift=back)
        if window.script("return document.activeElement.matches(arguments[0])", selector):
            return
    pytest.fail(f"{MOST_TABS} times Tab did not reach {selector}; the focus is at {window.focused()}")


def test_the_keyboard_alone_opens_an_exchange_and_its_body(window: Browser, pages: Path) -> None:
    """Tab and Enter lead from the top to an exchange, to what it carried, and back to the list."""
    window.resize(1400, 1000)
    window.open(pages / "report.html")
    window.press(TAB)
    assert window.focused() == "Skip to the content"
    tabbed_to(window, "nav a[href='#sessions']")
    window.press(ENTER)
    tabbed_to(window, "#session-view button[data-seq='3']")
    window.press(ENTER)
    assert window.focused() == "#3 POST /api/memory/recall"
    tabbed_to(window, "#exchange-view details:nth-of-type(2) summary")
    window.press(ENTER)
    window.wait_for("document.querySelectorAll('#exchange-view pre').length === 1")
    assert '"query": "window"' in window.script("return document.querySelector('#exchange-view pre').textContent")
    tabbed_to(window, "#exchange-view .buttons button:last-of-type", back=True)
    window.press(ENTER)
    assert window.script("return document.activeElement.dataset.seq") == "3"


def test_filters_leave_what_was_asked_for(window: Browser, pages: Path) -> None:
    """A search and the boxes leave the rows that fit both, and say how many."""
    window.open(pages / "report.html")
    shown = window.script("""
        const search = document.querySelector("#verdicts input[type=search]");
        search.value = "effective agent"; search.dispatchEvent(new Event("input"));
        const rows = [...document.querySelectorAll("#verdicts tbody tr")];
        return [rows.filter((r) => !r.hidden).map((r) => r.cells[0].textContent),
            document.querySelector("#verdicts .count").textContent];
    """)
    assert shown[0] == ["FAIL MUSTSIG-AGENT-001"]
    assert shown[1].startswith("1 of ")


def test_hostile_content_does_not_run(window: Browser, pages: Path) -> None:
    """What a trace says is text: no element comes of it, no function is called, the title stays."""
    window.complaints()
    window.open(pages / "hostile.html")
    window.script("window.ran = 0; window.owned = () => { window.ran += 1; };")
    assert window.script(OPEN_ALL) > 0
    shown: dict[str, Any] = window.script("""
        return {ran: window.ran, title: document.title,
            strange: document.querySelectorAll("img,iframe,svg[onload],a[href^=javascript],a[href^=http]").length,
            scripts: [...document.scripts].filter((s) => s.type !== "application/json").length,
            shown: document.body.innerText.includes("<script>owned()"),
            turned: /[\\u202e\\u2066\\u200f\\u061c]/.test(document.body.innerText)};
    """)
    assert shown == {
        "ran": 0,
        "title": "Signet conformance",
        "strange": 0,
        "scripts": 1,
        "shown": True,
        "turned": False,
    }
    assert window.complaints() == []


def test_the_policy_refuses_whatever_is_not_the_pages_own(window: Browser, pages: Path) -> None:
    """A script or a picture that got into the page after all would neither run nor be fetched."""
    window.open(pages / "report.html")
    window.requests()
    window.script("""
        const script = document.createElement("script"); script.textContent = "window.intruder = true";
        const image = document.createElement("img"); image.src = "http://127.0.0.1:9/i.png";
        document.body.append(script, image);
    """)
    window.wait_for("true")
    assert window.script("return window.intruder === undefined")
    complaints = " ".join(window.complaints())
    assert "script-src" in complaints
    assert "default-src" in complaints or "img-src" in complaints


def test_a_large_run_stays_small_and_opens(window: Browser, tmp_path: Path, record_property: Any) -> None:
    """50,000 exchanges make a page below 10 MB, which holds them all and says which bodies it left out."""
    lines = [dict(line) for _ in range(EXCHANGES // 5 // 10) for line in BREACHING * 10]
    for number, line in enumerate(lines):
        if "sessionKey" in (line["request"]["body"] or {}).get("json", {}):
            body = {**line["request"]["body"]["json"], "sessionKey": f"session-{number // 5}", "more": "words " * 50}
            lines[number] = {**line, "request": {**line["request"], "body": {"json": body}}}
    trace = read(write(tmp_path / "large.jsonl", lines))
    assert len(trace.exchanges) == EXCHANGES
    stream = io.StringIO()
    made = HtmlReport(stream)
    judged = JudgedTrace(trace, "0.145.7", {})
    made.add(judged, {})
    made.close(ending_of([judged], 0))
    page = tmp_path / "large.html"
    page.write_text(stream.getvalue(), encoding="utf-8")
    assert page.stat().st_size < 10_000_000
    window.resize(1400, 1000)
    window.open(page)
    milliseconds = window.script("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    record_property("page_bytes", page.stat().st_size)
    record_property("load_ms", milliseconds)
    print(f"{EXCHANGES} exchanges: {page.stat().st_size / 1e6:.1f} MB, loaded in {milliseconds:.0f} ms")
    assert window.script("return document.querySelector('#session-list button').textContent").startswith(
        "all exchanges, 50000"
    )
    window.script("[...document.querySelectorAll('#session-view button[data-seq]')].at(-1).click()")
    assert window.script("return document.querySelector('#exchange-view h3').textContent").startswith("#")
