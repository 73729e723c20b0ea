"""Tests of the adapter of a harness of its own, and its server."""
