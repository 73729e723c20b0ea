"""Tests of the kill matrix."""
