"""Facts about the documentation: its links, and the site that is built from it."""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.browser import browser, missing

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for pattern in (
        *("*.md", ".github/**/*.md", "docs/**/*.md", "ci/**/*.md", "examples/*.md", "examples/*/*.md", "schemas/*.md"),
        *("conformance/npm/*.md", "tests/evidence/*.md"),
    )
    for path in ROOT.glob(pattern)
)
pytestmark = pytest.mark.skipif(not (ROOT / "mkdocs.yml").exists(), reason="links lead into a whole checkout")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+?)\s*$", re.MULTILINE)
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_link_leads_to_a_file(page: Path) -> None:
    """Every relative link of a page is right where GitHub shows the page."""
    links = (link.partition("#")[0] for link in _LINK.findall(_CODE.sub("", page.read_text("utf-8"))))
    dead = [link for link in links if link and not link.startswith("http") and not (page.parent / link).exists()]
    assert dead == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_link_into_a_page_leads_to_a_heading(page: Path) -> None:
    """Every `page.md#heading` names a heading of that page, as GitHub makes anchors of headings."""
    links = (link.partition("#") for link in _LINK.findall(_CODE.sub("", page.read_text("utf-8"))))
    dead = [
        f"{link}#{anchor}"
        for link, _, anchor in links
        if anchor and not link.startswith("http") and anchor not in anchors((page.parent / link) if link else page)
    ]
    assert dead == []


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings: lower case, blanks as hyphens, other signs left out, repeats numbered."""
    headings = _HEADING.findall(re.sub(r"(?ms)^```.*?^```$", "", page.read_text("utf-8")))
    seen: Counter[str] = Counter()
    made = set()
    for heading in headings:
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        made.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return made


@pytest.fixture(name="site", scope="module")
def built_site() -> Path:
    """The site that `nox -s docs` has built, strictly."""
    if "SIGNET_SITE" not in os.environ:
        pytest.skip("looks at the site that is built by nox -s docs")
    return Path(os.environ["SIGNET_SITE"])


def test_each_requirement_has_a_page(site: Path) -> None:
    """The page is where reports expect it: requirements/ID/, and the index leads to it."""
    index = (site / "requirements" / "index.html").read_text("utf-8")
    for name in ("SIG-HTTP-001", "SIG-AGENT-002", "SIG-COV-001", "SIG-DAEMON-001"):
        assert f'<h1 id="{name.lower()}">{name}' in (site / "requirements" / name / "index.html").read_text("utf-8")
        assert f'<a href="{name}/"><code>{name}</code></a>' in index


def test_a_link_out_of_the_site_is_a_path(site: Path) -> None:
    """What is a link on GitHub, into the repository, is the path as text here."""
    page = (site / "add-a-rule" / "index.html").read_text("utf-8")
    assert "<code>schemas/requirements/START.json</code>" in page
    assert "../schemas" not in page


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    """No page names a script, style, font or image of another host."""
    loaded = re.compile(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?https?://[^\s>]+")
    outside = {hit for page in site.rglob("*.html") for hit in loaded.findall(page.read_text("utf-8"))}
    assert outside == set()


@pytest.fixture(name="served", scope="module")
def served_site(site: Path) -> Iterator[str]:
    """The site on a port of this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.skipif(missing() is not None, reason=f"no browser: {missing()}")
def test_the_site_works_in_a_browser(served: str) -> None:
    """No page complains, asks another host or scrolls sideways; a search for a requirement leads to its page."""
    with browser() as window:
        for width, dark in ((380, False), (800, True), (1400, False)):
            window.resize(width, 1000, dark=dark)
            for place in ("", "tutorial/", "reports/", "requirements/", "requirements/SIG-AGENT-002/"):
                window.visit(served + place)
                fits = window.script("return document.documentElement.scrollWidth <= window.innerWidth")
                assert fits, (place, width)
        window.visit(served)
        window.wait_for("document.querySelector('.md-search__input')")
        window.script("""
            const field = document.querySelector(".md-search__input");
            field.focus(); field.value = "SIG-AGENT-002"; field.dispatchEvent(new Event("keyup", {bubbles: true}));
        """)
        window.wait_for("document.querySelector('.md-search-result__link[href*=\"SIG-AGENT-002\"]')")
        assert [url for url in window.requests() if not url.startswith((served, "blob:"))] == []
        assert window.complaints() == []


CONTENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs/add-a-rule.md", "docs/extending.md")


@pytest.mark.parametrize("page", CONTENTS)
def test_a_path_that_a_page_for_maintainers_names_exists(page: str) -> None:
    """Of a path with a name to be chosen, such as `targets/NAME.json`, the folder exists."""
    named = re.findall(r"`((?:ci|conformance|docs|examples|recording_proxy|schemas|tests)/[\w./<>-]+)`", read(page))
    fixed = [
        re.split(r"<\w+>|[A-Z]{4,}|NAME", path)[0].rpartition("/")[0] if has_a_choice(path) else path for path in named
    ]
    assert [path for path in fixed if not (ROOT / path).exists()] == []


def test_each_page_is_in_the_contents_of_the_site() -> None:
    """What docs_hook.py enters itself, the pages of requirements and connectors, is apart."""
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")]
    own = [page for page in pages if not page.startswith(("requirements/", "connectors/"))]
    contents = set(re.findall(r"[\w/-]+\.md", read("mkdocs.yml").partition("\nnav:")[2]))
    assert [page for page in own if page not in contents] == [], "enter it in nav of mkdocs.yml"


def test_each_tool_of_the_maintainers_is_listed() -> None:
    tools = [path.name for pattern in ("*.py", "*.mjs") for path in ROOT.glob(f"ci/tools/{pattern}")]
    assert [name for name in tools if f"`{name}`" not in read("ci/tools/README.md")] == []


def has_a_choice(path: str) -> bool:
    return re.search(r"<\w+>|NAME|AREA|VERSION", path) is not None


def read(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


ANSWERS = {
    "how do I test my TypeScript plugin": ("createDriver", "npx signet-conformance init"),
    "why is this red": ("signet-conformance explain", "signet-conformance show TRACE"),
    "how do I add a harness that you do not know": ("[targets.mine]", "a program that plays the harness"),
    "how do I run it every night": ("examples/ci/nightly.yml", "on a schedule"),
    "what is recorded, and how safe is that": ("## What is recorded", "The kit has no telemetry"),
}


@pytest.mark.parametrize("question", ANSWERS)
def test_a_newcomers_question_is_answered_within_two_clicks_from_the_readme(question: str) -> None:
    near = {ROOT / "README.md"}
    for _click in range(2):
        links = [(page, link.partition("#")[0]) for page in near for link in _LINK.findall(page.read_text("utf-8"))]
        near |= {
            path for page, link in links if link.endswith(".md") and (path := (page.parent / link).resolve()).exists()
        }
    assert [page for page in near if all(words in page.read_text("utf-8") for words in ANSWERS[question])]
