"""Tests of generated sessions against broken connectors."""
