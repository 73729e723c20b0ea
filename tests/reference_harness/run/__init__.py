"""Tests of headless tasks."""
