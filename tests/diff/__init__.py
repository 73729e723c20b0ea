"""Tests of the diff; a package, so that its helper modules have names of their own."""
