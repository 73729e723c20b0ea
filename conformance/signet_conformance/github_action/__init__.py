"""The lane: one driven run for a CI system, reported as step summary, annotations, outputs and an exit status."""
