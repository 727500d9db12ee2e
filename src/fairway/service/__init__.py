"""The live system over HTTP: the REST API, events, logs and metrics, behind tokens."""
