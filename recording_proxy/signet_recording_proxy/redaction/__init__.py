"""Secrets are taken out before anything reaches the disk; equal secrets stay equal."""
