"""Captures that others made, as traces and back."""
