"""HTTP: the server, the application, the table of routes with the rights that they ask for."""
