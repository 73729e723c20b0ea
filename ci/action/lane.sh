#!/bin/sh
# Installs the kit that this file belongs to and runs its lane: a GitHub action and a plain machine do the same.
# The inputs are environment variables, SIGNET_LANE_TARGET and its like; signet-conformance lane --help lists them.
# SIGNET_LANE_PYTHON names an interpreter that has the kit already; then nothing is installed.
set -eu

kit=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
python=${SIGNET_LANE_PYTHON:-}

if [ -z "$python" ]; then
    place=${RUNNER_TEMP:-${XDG_CACHE_HOME:-$HOME/.cache}}/signet-conformance-lane
    # The packages of the Python at hand stay visible: a connector in Python brings its own.
    if ! python3 -m venv --system-site-packages "$place" ||
        ! "$place/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$kit"; then
        echo "error: $place: the kit cannot be installed" >&2
        echo "try: the step above says why; the kit needs Python 3.11 or later, with venv and pip" >&2
        exit 4
    fi
    python=$place/bin/python
fi

if ! command -v "$python" >/dev/null; then
    echo "error: SIGNET_LANE_PYTHON: there is no such interpreter" >&2
    echo "try: leave it out, and the lane installs the kit" >&2
    exit 2
fi
exec "$python" -P -m signet_conformance.cli lane
