"""The report as one HTML file: the page, its parts and its assets."""
