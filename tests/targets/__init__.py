"""Tests of the target profiles and of a repository's own settings for them."""
