"""What a GPU can really be cut into, and which of it a load should have."""
