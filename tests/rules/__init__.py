"""Tests of the rules: cases as data, recordings of real connectors, the facts that rules read."""
