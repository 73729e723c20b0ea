"""Facts about the report as a viewer of traces: addresses, search, time, copies, keys and paper, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from signet_conformance.cli.commands import commands
from tests.support.browser import Browser, browser, missing
from tests.support.bun import axe
from tests.support.trace_files import BREACHING, CONFORMING, Line, write

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"no browser: {missing()}")

FAULT = {"kind": "delay", "match": {"path": "/api/*"}, "id": 7, "delay_s": 2}


def mark(kind: str, t: float, /, **data: Any) -> Line:
    """A mark of the kit."""
    return {"kind": "mark", "t": t, "name": kind, "data": data}


BUSY = [
    mark("scenario", 0.0, name="busy", title="A daemon that is busy"),
    mark("step", 0.1, index=0, step="start", session="s1", agent="atlas-agent"),
    mark("fault", 0.5, on=True, **FAULT),
    *CONFORMING,
    mark("fault", 9.0, on=False, **FAULT),
]


RECALLED = ["POST", "/api/memory/recall", "/somewhere/src/connector.ts:103:7"]
SENT = mark("sent", 99.0, index=None, requests=[RECALLED, RECALLED])


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    """A browser for all facts here."""
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two traces; in the second a fault was on while a step was taken."""
    folder = tmp_path_factory.mktemp("viewer")
    write(folder / "broken.jsonl", [*BREACHING, SENT])
    write(folder / "busy.jsonl", BUSY)
    done = CliRunner().invoke(
        commands,
        ["check", str(folder / "broken.jsonl"), str(folder / "busy.jsonl"), "--html", str(folder / "page.html")],
    )
    assert done.exit_code in (0, 1), done.output
    return folder / "page.html"


def at(window: Browser, page: Path, address: str) -> Browser:
    """The page as somebody sees it who was sent an address of it."""
    return window.visit("about:blank").visit(page.resolve().as_uri() + address)


def text_of(window: Browser, selector: str) -> str:
    """The text of the first element of a selector."""
    return str(window.script("return document.querySelector(arguments[0]).textContent", selector))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_first_breach_is_seen_without_scrolling(window: Browser, page: Path, *, dark: bool) -> None:
    """On a screen of 1400 by 900: what is wrong, the request with its member marked, and the line that sent it."""
    window.resize(1400, 900, dark=dark)
    window.open(page)
    window.wait_for("document.querySelector('.request mark')")
    seen = window.script("""
        const cause = document.querySelector("#breaches article");
        const shown = ["h3", ".facts", ".request mark", "a[href^='vscode:']"].map((each) => cause.querySelector(each));
        return [scrollY, shown.every((it) => { const place = it.getBoundingClientRect();
            return place.top >= 0 && place.bottom <= innerHeight && place.height > 0; }),
          cause.querySelector(".request mark").textContent.trim(), shown[3].getAttribute("href")];
    """)
    assert seen == [0, True, "agentId is not there", "vscode://file/somewhere/src/connector.ts:103"]


def test_the_page_opens_on_the_exchange_of_the_first_breach(window: Browser, page: Path) -> None:
    """Below it stands drawn, with the line that sent it; the others wait, and the page has no address of it yet."""
    window.visit("about:blank").open(page)
    assert text_of(window, "#exchange-view h3") == "#3 POST /api/memory/recall"
    assert "/somewhere/src/connector.ts:103" in text_of(window, "#exchange-view .facts")
    assert window.script("return location.hash") == ""
    assert window.script("return document.querySelectorAll('.request details[open] mark').length") == 1


def test_what_is_breached_is_ticked_and_the_rest_folded(window: Browser, page: Path) -> None:
    """Of the verdicts those that fail or warn show at first; a box brings back the others."""
    window.open(page)
    rows = "[...document.querySelectorAll('#verdicts tbody tr')]"
    shown = f"return {rows}.filter((row) => !row.hidden).map((row) => row.dataset.kind)"
    assert set(window.script(shown)) == {"FAIL"}
    window.script("document.querySelector('#verdicts input[data-filter=PASS]').click()")
    assert set(window.script(shown)) == {"FAIL", "PASS"}


def test_a_breach_leads_to_the_member_that_is_wrong(window: Browser, page: Path) -> None:
    """The link in a breach opens the trace, the exchange, the body, and marks the member, present or not."""
    window.open(page)
    window.script("""
        const link = [...document.querySelectorAll("#breaches article a")].find((a) => a.hash.includes("agentId"));
        link.click();
    """)
    window.wait_for("document.querySelector('#exchange-view mark')")
    marked = text_of(window, "#exchange-view mark")
    assert "agentId" in marked
    assert window.focused().startswith("#")


def test_an_address_can_be_sent_and_back_leads_back(window: Browser, page: Path) -> None:
    """A new window shows what the address names; the browser's Back shows the exchange before."""
    at(window, page, "#trace=broken&exchange=3")
    assert text_of(window, "#exchange-view h3").startswith("#3 ")
    window.script("document.querySelector('#session-view button[data-seq=\"4\"]').click()")
    assert window.script("return location.hash").endswith("exchange=4")
    window.script("history.back()")
    window.wait_for("document.querySelector('#exchange-view h3').textContent.startsWith('#3 ')")


@pytest.mark.parametrize(
    "address", ["#trace=gone&exchange=1", "#trace=broken&exchange=999", "#trace=%E0%A4%A&exchange"]
)
def test_an_address_of_nothing_says_so(window: Browser, page: Path, address: str) -> None:
    """A trace or an exchange that the page does not hold is named; the rest of the page works."""
    window.complaints()
    at(window, page, address)
    window.wait_for("document.querySelector('#session-view h3')")
    assert window.complaints() == []


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"words": "atlas billing nowhere"}, 0),
        ({"Operation": "session-start"}, None),
        ({"During": "fault delay"}, None),
    ],
    ids=["words", "operation", "during"],
)
def test_exchanges_are_found_in_all_traces(
    window: Browser, page: Path, filters: dict[str, str], found: int | None
) -> None:
    """Words of bodies, an operation or a fault lead to the exchanges that have them, and only to those."""
    window.open(page)
    shown: Any = window.script(
        """
        const holder = document.getElementById("find"), wanted = arguments[0];
        holder.dispatchEvent(new Event("focusin"));
        const search = holder.querySelector("input"), labels = [...holder.querySelectorAll("label")];
        if (wanted.words) { search.value = wanted.words; search.dispatchEvent(new Event("input")); }
        for (const label of labels) {
          const name = label.firstChild.data.trim(), select = label.querySelector("select");
          if (select && wanted[name]) { select.value = wanted[name]; select.dispatchEvent(new Event("change")); }
        }
        return [holder.querySelector("[role=status]").textContent,
            [...holder.querySelectorAll("ol a")].map((a) => a.textContent)];
        """,
        filters,
    )
    count, entries = shown
    assert count == f"{len(entries)} exchange{'' if len(entries) == 1 else 's'} found"
    if found is not None:
        assert len(entries) == found
    elif "Operation" in filters:
        assert entries
        assert all("/api/hooks/session-start" in entry for entry in entries)
    else:
        assert len(entries) == len(CONFORMING)
        assert all(entry.startswith("busy") for entry in entries)


def test_a_session_is_drawn_in_time_with_its_faults(window: Browser, page: Path) -> None:
    """A bar an exchange, a shade where a fault was on; a bar leads to its exchange."""
    at(window, page, "#trace=busy")
    drawn: Any = window.script("""
        [...document.querySelectorAll("input[name=drawing]")].at(-1).click();
        const svg = document.querySelector("#session-view svg");
        svg.querySelector(".bar").dispatchEvent(new MouseEvent("click", {bubbles: true}));
        const spans = [...svg.querySelectorAll(".span title")].map((title) => title.textContent);
        return [svg.querySelectorAll(".bar").length, spans];
    """)
    assert drawn == [len(CONFORMING), ["fault: delay"]]
    assert text_of(window, "#exchange-view h3").startswith("#")


def test_what_was_asked_stands_beside_what_was_sent(window: Browser, page: Path) -> None:
    """An exchange tells the step before it and the faults that were on meanwhile."""
    at(window, page, "#trace=busy&exchange=4")
    said = text_of(window, "#exchange-view .facts")
    assert "stepstart s1" in said
    assert "meanwhiledelay" in said


def test_a_request_a_scenario_and_a_test_can_be_taken_along(window: Browser, page: Path) -> None:
    """The command quotes what it holds; the scenario has the steps and faults of the trace; the test performs it."""
    at(window, page, "#trace=busy&exchange=4")
    curl, scenario, test = window.script("""
        const data = shown.data, row = shown.row, scenario = asScenario(data);
        return [asCurl(data, row, data.bodies[row[SEQ]][0]), scenario, asTest(data, scenario, "SIG-AGENT-001")];
    """)
    assert curl.startswith("curl -sS -X '")
    assert '"$SIGNET_DAEMON_URL"' in curl
    assert [step["step"] for step in scenario["steps"]] == ["start", "fault", "fault_off"]
    assert scenario["steps"][1] == {
        "step": "fault",
        "fault": {"kind": "delay", "delay_s": 2},
        "match": {"path": "/api/*"},
    }
    assert json.loads(test.split("\n")[1]) == scenario
    assert test.endswith("--scenario busy.json -k 'SIG-AGENT-001'\n")


def test_keys_walk_from_exchange_to_exchange(window: Browser, page: Path) -> None:
    """The letters j and k go on and back, n leads to the next one with a finding; in a field they are letters."""
    at(window, page, "#trace=broken")
    window.press("j")
    first = text_of(window, "#exchange-view h3")
    window.press("j", "k")
    assert text_of(window, "#exchange-view h3") == first
    window.press("n")
    assert window.script("return document.querySelectorAll('#exchange-view .verdict').length") > 0
    window.script("document.querySelector('#find input').focus()")
    before = text_of(window, "#exchange-view h3")
    window.press("j")
    assert text_of(window, "#exchange-view h3") == before
    assert window.script("return document.querySelector('#find input').value") == "j"


def test_paper_shows_what_is_folded(window: Browser, page: Path) -> None:
    """Everything that can be unfolded is open when the page is printed, bodies too, and folded again afterwards."""
    at(window, page, "#trace=broken&exchange=3")
    opened: Any = window.script("""
        const folded = () => document.querySelectorAll("details:not([open])").length, before = folded();
        window.dispatchEvent(new Event("beforeprint"));
        const printed = [folded(), document.querySelectorAll("#exchange-view pre").length > 0];
        window.dispatchEvent(new Event("afterprint"));
        return [before, ...printed, folded()];
    """)
    assert opened[0] > 0
    assert opened[1:] == [0, True, opened[0]]


AXE = axe()


@pytest.mark.skipif(AXE is None, reason="axe-core is not installed beside bun")
@pytest.mark.parametrize("width", [380, 800, 1400])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(window: Browser, page: Path, width: int, *, dark: bool) -> None:
    """axe-core has nothing to say of the page with an exchange open, at three widths, in light and dark."""
    assert AXE is not None
    window.resize(width, 1000, dark=dark)
    at(window, page, "#trace=broken&exchange=3&at=%2Frequest%2Fbody%2Fjson%2FagentId")
    assert window.axe(AXE) == []
