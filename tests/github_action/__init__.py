"""Tests of the lane; a package, so that its helper modules have names of their own."""
