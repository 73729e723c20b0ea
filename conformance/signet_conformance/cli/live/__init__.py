"""A page that grows with its recordings: what is judged again as they grow, and the server that shows it."""
