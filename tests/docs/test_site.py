"""Facts about the documentation: its links, and the site that is built from it."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), *ROOT.glob("ci/*/README.md"), ROOT / "examples" / "README.md"]
)
pytestmark = pytest.mark.skipif(not (ROOT / "mkdocs.yml").exists(), reason="links lead into a whole checkout")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_link_leads_to_a_file(page: Path) -> None:
    """Every relative link of a page is right where GitHub shows the page."""
    links = (link.partition("#")[0] for link in _LINK.findall(_CODE.sub("", page.read_text("utf-8"))))
    dead = [link for link in links if link and not link.startswith("http") and not (page.parent / link).exists()]
    assert dead == []


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
