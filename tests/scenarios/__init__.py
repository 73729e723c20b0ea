"""Tests of scenarios: their form, the strategies, the draws."""
