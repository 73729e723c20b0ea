"""Tests of probing."""
