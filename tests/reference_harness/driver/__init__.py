"""Tests of the driver protocol."""
