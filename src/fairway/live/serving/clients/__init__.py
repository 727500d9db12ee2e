"""The clients of a served application: what they and the workers say to each other, with and without asyncio."""
