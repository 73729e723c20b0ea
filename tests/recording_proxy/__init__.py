"""Tests of the recorder: a package for their shared rig, which no wheel holds."""
