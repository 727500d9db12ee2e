"""The HTTP side of serving workflows: requests in, answers and pieces of answers out."""
