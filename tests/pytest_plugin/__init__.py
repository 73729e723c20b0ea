"""Tests of the pytest plugin, against real pytest runs in repositories of their own."""
