"""Compass as its authors' simulator, Navigator, runs it."""
