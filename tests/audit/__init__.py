"""Tests of audits."""
