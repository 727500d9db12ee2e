"""The live training system in one process: controller, store, agent and keepers on a simulated machine."""
