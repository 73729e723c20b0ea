"""Tests of the client of the daemon."""
