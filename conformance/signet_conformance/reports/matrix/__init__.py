"""Connectors side by side, by requirement."""
