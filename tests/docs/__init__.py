"""Tests of the documentation; a package, so that its helper modules have names of their own."""
