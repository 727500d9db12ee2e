"""Which accelerators jobs sit on that ask for parts of them: rules, and the free room that they choose from."""
