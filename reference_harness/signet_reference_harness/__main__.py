"""`python -m signet_reference_harness`: the driver protocol on standard input and output."""

from __future__ import annotations

import sys

from signet_reference_harness.driver import main

sys.exit(main())
