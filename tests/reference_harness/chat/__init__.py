"""The tests of the chat."""
