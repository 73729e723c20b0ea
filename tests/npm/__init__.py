"""Tests of the package for npm."""
