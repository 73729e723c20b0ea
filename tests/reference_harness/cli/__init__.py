"""Tests of the commands of signet-harness."""
