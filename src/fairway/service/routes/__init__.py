"""The routes of the REST API, a file for each thing that can be asked about."""
