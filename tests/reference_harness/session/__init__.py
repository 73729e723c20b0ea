"""Tests of sessions, their turns and their events."""
