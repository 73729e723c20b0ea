"""`python -m signet_reference_harness.cli` is `signet-harness`."""

from signet_reference_harness.cli import main

main()
