"""The live training system: the controller, its loop, what it commands, what it hears, and how it recovers."""
