"""The tests of the channel to a terminal."""
