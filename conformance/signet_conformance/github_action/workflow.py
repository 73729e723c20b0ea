"""The workflow file that `init` writes: the steps of one lane in a connector's repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from signet_conformance import __version__
from signet_conformance.github_action.inputs import PREFIX

CHECKOUT = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
PYTHON = "actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0"
UPLOAD = "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0"

_HEAD = """\
# Drives the connector against Signet's daemon contract. Written by signet-conformance init; it is yours now.
name: Signet conformance

on:
  push:
  pull_request:

permissions:
  contents: read

jobs:
  conformance:
    runs-on: ubuntu-24.04
    timeout-minutes: 30
"""

_STEPS = f"""\
    steps:
      - uses: {CHECKOUT}
        with:
          persist-credentials: false
      - uses: {PYTHON}
        with:
          python-version: "3.12"
"""

_ONE_OF_SEVERAL = """\
    name: conformance (${{ matrix.target }})
    strategy:
      fail-fast: false
      matrix:
        include:
"""

_BUILD_OF_SEVERAL = """\
      - if: ${{ matrix.build != '' }}
        run: bash -euo pipefail -c "$BUILD"
        working-directory: ${{ matrix.build-folder }}
        env:
          BUILD: ${{ matrix.build }}
"""

_NOTHING_TO_BUILD = """\
      # Whatever builds the connector belongs here.
"""


@dataclass(frozen=True, slots=True)
class Driven:
    """One connector that a lane drives.

    `inputs` are input to value, each of a shape that the lane accepts; `build` are the commands that build the
    connector, in the folder `within` of the repository.
    """

    inputs: Mapping[str, str]
    build: Sequence[str] = ()
    within: str = "."


@dataclass(frozen=True, slots=True)
class Workflow:
    """What a lane's workflow says: a job for each connector.

    `pin` is the kit's action, None for the kit of a package index.
    """

    driven: Sequence[Driven]
    pin: str | None

    def text(self) -> str:
        """The file."""
        if len(self.driven) == 1:
            (only,) = self.driven
            return _HEAD + _STEPS + _lines(_built(only)) + _lines(self._lane(only.inputs))
        names = dict.fromkeys(name for each in self.driven for name in each.inputs)
        lane = _lines(self._lane({name: f"${{{{ matrix.{name} }}}}" for name in names}))
        jobs = (_lines(_job(each, names)) for each in self.driven)
        return _HEAD + _ONE_OF_SEVERAL + "".join(jobs) + _STEPS + _BUILD_OF_SEVERAL + lane

    def _lane(self, inputs: Mapping[str, str]) -> Iterator[str]:
        if self.pin is not None:
            repository, _, commit = self.pin.partition("@")
            yield f"      - uses: {repository}/ci/action@{commit} # signet-conformance {__version__}"
            yield "        with:"
            yield from (f'          {name}: "{value}"' for name, value in inputs.items())
            return
        yield "      # From your package index. An index that lacks it: pip install git+https://github.com/OWNER/REPOSITORY@COMMIT"
        yield f"      - run: python -m pip install signet-conformance=={__version__}"
        yield "      - id: lane"
        yield "        run: signet-conformance lane"
        yield "        env:"
        yield from (f'          {PREFIX}{n.upper().replace("-", "_")}: "{value}"' for n, value in inputs.items())
        yield "      - if: ${{ always() && steps.lane.outputs.report != '' }}"
        yield f"        uses: {UPLOAD}"
        yield "        with:"
        yield "          name: ${{ steps.lane.outputs.artifact }}"
        yield "          path: ${{ steps.lane.outputs.report }}"
        yield "          if-no-files-found: ignore"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _built(driven: Driven) -> Iterator[str]:
    if not driven.build:
        yield _NOTHING_TO_BUILD.rstrip("\n")
    for line in driven.build:
        yield f"      - run: {line}"
        if driven.within != ".":
            yield f"        working-directory: {driven.within}"


def _job(driven: Driven, names: Iterable[str]) -> Iterator[str]:
    """What the job of one connector differs in from the others."""
    dash = "- "
    for name in names:
        yield f'          {dash}{name}: "{driven.inputs.get(name, "")}"'
        dash = "  "
    yield f'            build-folder: "{driven.within}"'
    yield "            build: |" if driven.build else '            build: ""'
    yield from (f"              {line}" for line in driven.build)
