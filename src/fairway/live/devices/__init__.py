"""The GPUs of this machine: found, named and read through the libraries of their makers."""
