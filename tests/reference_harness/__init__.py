"""Tests of the reference harness, against real sockets."""
