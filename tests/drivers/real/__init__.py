"""Real programs, driven."""
