"""Scenarios: ordered lists of steps over one or more sessions, as data."""
