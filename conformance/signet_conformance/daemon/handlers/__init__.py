"""The handlers of the routes, which answer the requests."""
