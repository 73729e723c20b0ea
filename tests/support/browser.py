"""A real browser, driven over WebDriver: what a page shows, what it asks of the network, what it complains about."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRIVER = "chromedriver"
TAB, ENTER, SHIFT = "\ue004", "\ue007", "\ue008"


def missing() -> str | None:
    """What this machine lacks for the tests of pages; None when it has all."""
    if shutil.which(DRIVER) is None:
        return f"{DRIVER} is not on PATH"
    return None if any(map(shutil.which, BROWSERS)) else f"none of {', '.join(BROWSERS)} is on PATH"


class Browser:
    """One window of a browser that has no network but what is logged."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        # What the browser itself says before the first page is nobody's concern.
        self._logged("performance")

    def visit(self, url: str) -> Self:
        """Open a page from its address."""
        self._post("url", url=url)
        return self

    def open(self, page: Path) -> Self:
        """Open a page from its file."""
        return self.visit(page.resolve().as_uri())

    def script(self, source: str, *arguments: Any) -> Any:
        """What a script says that runs in the page as the browser's own."""
        return self._post("execute/sync", script=source, args=list(arguments))

    def promised(self, source: str) -> Any:
        """What the promise of an expression comes to in the page."""
        wrapped = (
            f"const done = arguments[0]; Promise.resolve({source}).then(done, error => done(`refused: ${{error}}`));"
        )
        return self._post("execute/async", script=wrapped, args=[])

    def press(self, *keys: str, shift: bool = False) -> None:
        """Press keys one after the other, as a user does who has no mouse; all of them with Shift if wanted."""
        # A page takes no key before its first frame is painted, which it may not be when it is loaded.
        self.promised("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        if shift:
            actions = [{"type": "keyDown", "value": SHIFT}, *actions, {"type": "keyUp", "value": SHIFT}]
        self._post("actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def focused(self) -> str:
        """The text of what has the focus, its label where it has one."""
        return str(
            self.script("const it = document.activeElement; return it.getAttribute('aria-label') || it.textContent;")
        )

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """Give the page a width and a height in CSS pixels, and the colours that the user prefers."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._devtools("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._devtools("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, path: Path) -> None:
        """Leave a picture of the window."""
        path.write_bytes(base64.b64decode(self._client.get("screenshot").json()["value"]))

    def picture(self, width: int, until: str) -> bytes:
        """The page as WebP, from its top down to the element with the id `until`."""
        self.script("document.documentElement.style.scrollbarWidth = 'none';")
        height = self.script("return document.getElementById(arguments[0]).getBoundingClientRect().top;", until)
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        answer = self._devtools("Page.captureScreenshot", format="webp", quality=60, clip=clip)
        return base64.b64decode(answer["data"])

    def wait_for(self, condition: str) -> None:
        """Return when a condition of the page holds; an error when it never does."""
        # In the script itself: the page's policy lets nothing be made into code later.
        source = f"""
            const done = arguments[0], began = Date.now();
            const look = () => {condition} ? done(true)
                : Date.now() - began > 20000 ? done(false) : requestAnimationFrame(look);
            look();
        """
        if not self._post("execute/async", script=source, args=[]):
            raise RuntimeError(f"never came true: {condition}")

    def controls_without_a_name(self) -> list[str]:
        """The roles of controls that a screen reader would have nothing to say of."""
        controls = {"button", "checkbox", "searchbox", "textbox", "link", "DisclosureTriangle", "meter", "image"}
        nodes = self._devtools("Accessibility.getFullAXTree")["nodes"]
        return [
            str(node["role"]["value"])
            for node in nodes
            if not node.get("ignored") and node["role"]["value"] in controls and not node.get("name", {}).get("value")
        ]

    def axe(self, script: Path) -> list[str]:
        """What axe-core has to say of the page as it is."""
        if not self.script("return 'axe' in window"):
            self.script(script.read_text(encoding="utf-8"))
        told = self.promised("axe.run().then((r) => r.violations.map((v) => v.id + ': ' + v.nodes[0].html))")
        assert isinstance(told, list), told
        return told

    def complaints(self) -> list[str]:
        """What the console says since it was asked last."""
        return [str(entry["message"]) for entry in self._logged("browser")]

    def requests(self) -> list[str]:
        """What was asked of the network since the last question: no files, no data, no pages of the browser itself."""
        events = (json.loads(entry["message"])["message"] for entry in self._logged("performance"))
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if not url.startswith(("file:", "data:", "chrome:", "chrome-untrusted:"))]

    def _logged(self, kind: str) -> list[dict[str, Any]]:
        return list(self._post("se/log", type=kind))

    def _devtools(self, command: str, **parameters: Any) -> Any:
        return self._post("goog/cdp/execute", cmd=command, params=parameters)

    def _post(self, command: str, **body: Any) -> Any:
        answer = self._client.post(command, json=body).json()["value"]
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(f"{command}: {answer['error']}: {answer.get('message')}")
        return answer


def _driver() -> tuple[subprocess.Popen[str], int]:
    """The driver's process and its port."""
    for _attempt in range(50):
        driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert driver.stdout is not None
        said = []
        for line in driver.stdout:
            said.append(line)
            if "successfully on port" in line:
                return driver, int(line.rstrip(".\n").rsplit(" ", 1)[1])
        driver.communicate()
        # It takes a port that is free on ::1, and ends where something else listens on the same port of 127.0.0.1.
        if not any("port not available" in line for line in said):
            raise RuntimeError(f"{DRIVER} ended with {driver.returncode} before it listened: {''.join(said)}")
    raise RuntimeError(f"{DRIVER} found no port that is free on ::1 and on 127.0.0.1: {''.join(said)}")


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser in a process of its own, with a profile of its own; both are gone afterwards."""
    binary = next(filter(None, map(shutil.which, BROWSERS)))
    with tempfile.TemporaryDirectory(prefix="signet-browser-", ignore_cleanup_errors=True) as profile:
        driver, port = _driver()
        try:
            # --no-sandbox: containers run as root, and the pages are the tests' own.
            options = [
                "--headless=new",
                "--no-sandbox",
                "--disable-dev-shm-usage",
                "--disable-gpu",
                f"--user-data-dir={profile}",
            ]
            wanted = {
                "goog:chromeOptions": {"binary": binary, "args": options},
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
                "timeouts": {"script": 180_000},
            }
            root = f"http://127.0.0.1:{port}"
            with httpx.Client(timeout=180, trust_env=False) as client:
                answer = client.post(f"{root}/session", json={"capabilities": {"alwaysMatch": wanted}}).json()["value"]
                session = f"{root}/session/{answer['sessionId']}"
            with httpx.Client(base_url=f"{session}/", timeout=180, trust_env=False) as client:
                try:
                    yield Browser(client)
                finally:
                    client.delete(session)
        finally:
            driver.terminate()
            driver.wait(timeout=180)
            if driver.stdout is not None:
                driver.stdout.close()
