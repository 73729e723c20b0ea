"""Facts about what a run came to."""
