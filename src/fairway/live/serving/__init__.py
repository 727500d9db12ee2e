"""Serves workflows of real models: what an application is, and the workers, clients and measurements around it."""
