"""Tests of child processes and of what drives them, with real children."""
