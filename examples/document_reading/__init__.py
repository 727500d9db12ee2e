"""An application to serve: reads the text of page images, with models that come inside PyPI wheels."""
