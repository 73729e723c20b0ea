"""Tests of the events of a run."""
