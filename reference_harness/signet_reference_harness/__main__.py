"""`python -m signet_reference_harness`: the driver protocol on standard input and output."""

from __future__ import annotations

import argparse
import sys

from signet_reference_harness.driver import main

parser = argparse.ArgumentParser(prog="python -m signet_reference_harness")
parser.add_argument(
    "--start-at-prompt", action="store_true", help="tell the daemon of a session at its first prompt, not when it opens"
)
sys.exit(main(starts_at_prompt=parser.parse_args().start_at_prompt))
