"""Whose turn is it to speak? Answered for the sound of every caller, ten times a second."""
