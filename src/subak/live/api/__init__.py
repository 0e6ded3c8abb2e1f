"""The HTTP interface of a federation: models, routes and the server."""
