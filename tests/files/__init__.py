"""Facts about files of people."""
