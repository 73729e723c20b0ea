"""Removes secrets before anything reaches the disk; equal secrets stay equal."""
