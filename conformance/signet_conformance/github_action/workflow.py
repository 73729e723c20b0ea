"""The workflow file that `init` writes: the steps of one lane in a connector's repository."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from signet_conformance import __version__
from signet_conformance.github_action.inputs import PREFIX

CHECKOUT = "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1"
PYTHON = "actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0"
UPLOAD = "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0"

_HEAD = f"""\
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
    steps:
      - uses: {CHECKOUT}
        with:
          persist-credentials: false
      - uses: {PYTHON}
        with:
          python-version: "3.12"
"""

_NOTHING_TO_BUILD = """\
      # Whatever builds the connector belongs here.
"""


@dataclass(frozen=True, slots=True)
class Workflow:
    """What a lane's workflow says. `pin` is the kit's action, None for the kit of a package index.

    `inputs` are (input, value), each of a shape that the lane accepts; `build` are the commands that build the
    connector, in the folder `within` of the repository.
    """

    inputs: Sequence[tuple[str, str]]
    pin: str | None
    build: Sequence[str] = ()
    within: str = "."

    def text(self) -> str:
        """The file."""
        lines = [*self._built(), *self._lane()]
        return _HEAD + "".join(f"{line}\n" for line in lines)

    def _built(self) -> Iterator[str]:
        if not self.build:
            yield _NOTHING_TO_BUILD.rstrip("\n")
        for line in self.build:
            yield f"      - run: {line}"
            if self.within != ".":
                yield f"        working-directory: {self.within}"

    def _lane(self) -> Iterator[str]:
        if self.pin is not None:
            repository, _, commit = self.pin.partition("@")
            yield f"      - uses: {repository}/ci/action@{commit} # signet-conformance {__version__}"
            yield "        with:"
            yield from (f'          {name}: "{value}"' for name, value in self.inputs)
            return
        yield f"      - run: python -m pip install signet-conformance=={__version__}"
        yield "      - id: lane"
        yield "        run: signet-conformance lane"
        yield "        env:"
        yield from (f'          {PREFIX}{n.upper().replace("-", "_")}: "{value}"' for n, value in self.inputs)
        yield "      - if: ${{ always() && steps.lane.outputs.report != '' }}"
        yield f"        uses: {UPLOAD}"
        yield "        with:"
        yield "          name: ${{ steps.lane.outputs.artifact }}"
        yield "          path: ${{ steps.lane.outputs.report }}"
        yield "          if-no-files-found: ignore"
