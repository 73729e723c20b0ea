"""Tests of the drivers, with tiny connectors of our own inside each kind of host."""
