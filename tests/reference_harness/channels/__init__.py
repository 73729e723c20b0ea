"""The tests of channels."""
