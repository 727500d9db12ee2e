"""The HTTP server under the REST API: connections, bodies, problems as answers."""
