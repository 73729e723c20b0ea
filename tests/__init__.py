"""The kit's own tests. They mirror the tree; what they share stands in `tests.support`."""
