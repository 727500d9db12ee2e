"""The keeper: the process that starts the processes of one run, stops them, and writes down how the run ended."""
