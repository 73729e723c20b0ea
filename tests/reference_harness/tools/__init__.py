"""Tests of the harness's tools."""
