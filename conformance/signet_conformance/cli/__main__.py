"""`python -m signet_conformance.cli` is `signet-conformance`."""

from signet_conformance.cli import main

main()
