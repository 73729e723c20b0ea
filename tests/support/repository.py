"""A repository that uses the kit: a folder with files of its own, and real pytest runs in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.support.inner_pytest import Finished, finished, run, run_plainly


@dataclass(frozen=True)
class Case:
    """One test case of a JUnit file. `outcome` is passed, skipped, failure or error; `text` is why."""

    outcome: str
    verdict: str | None
    text: str


@dataclass(frozen=True)
class Repository:
    """A folder in which pytest is run."""

    folder: Path

    def write(self, name: str, text: str) -> Path:
        """A file of the repository."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def run(self, *arguments: str | Path, **extra: str) -> Finished:
        """A pytest run, `extra` in its environment."""
        return run(self.folder, *arguments, **extra)

    def run_plainly(self, *arguments: str | Path) -> Finished:
        """A pytest run that imports everything itself."""
        return run_plainly(self.folder, *arguments)

    def launch(self, words: Sequence[str], **extra: str) -> Finished:
        """A program run here as pytest is."""
        return finished(words, self.folder, **extra)

    def conform(self, *arguments: str | Path, **extra: str) -> Finished:
        """A pytest run that asks for the kit."""
        return self.run("--signet-conformance", *arguments, **extra)

    def judge(self, recording: Path, *arguments: str | Path, **extra: str) -> tuple[Finished, Mapping[str, Case]]:
        """A run that judges a recording, with its test cases by the names JUnit has for them."""
        file = self.folder / "junit.xml"
        done = self.conform("--signet-trace", recording, f"--junitxml={file}", *arguments, **extra)
        return done, cases(file)


def cases(file: Path) -> Mapping[str, Case]:
    """The test cases of a JUnit file, by name."""
    by_name = {}
    for case in ET.parse(file).iter("testcase"):  # noqa: S314 - pytest has just written it
        verdict = case.find("properties/property[@name='signet_verdict']")
        endings = [child for child in case if child.tag in ("skipped", "failure", "error")]
        by_name[case.attrib["name"]] = Case(
            outcome=endings[0].tag if endings else "passed",
            verdict=verdict.attrib["value"] if verdict is not None else None,
            text="".join(f"{ending.attrib['message']}\n{ending.text}" for ending in endings),
        )
    return by_name
