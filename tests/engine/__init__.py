"""Tests of the engine: folding, gating, crashes, whole runs, and what must hold over any trace."""
