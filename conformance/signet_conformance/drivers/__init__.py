"""Drivers make one kind of connector perform a scenario's steps."""
