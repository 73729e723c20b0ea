"""The kit's pytest plugin: its hooks import the rest only in runs with --signet-conformance."""
