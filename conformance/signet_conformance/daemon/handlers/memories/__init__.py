"""Saving, finding, changing and forgetting memories."""
