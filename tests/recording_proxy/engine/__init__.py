"""Facts about what carries the bytes."""
