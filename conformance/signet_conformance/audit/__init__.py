"""Audits of many recordings: what lies in a data set, judged in batches, as rows, a summary and a page.

A recording is judged alone, by whoever is free; what several of them show together (`between`) is worked out from the
rows of their sessions. Nothing that tells where a recording lies, or what was said in it, comes into the results.
"""
