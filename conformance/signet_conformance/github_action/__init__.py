"""The lane: one driven run for a CI system, told to it in step summary, annotations, outputs and an exit status."""
