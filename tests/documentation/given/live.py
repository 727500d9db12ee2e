"""What the page of live training takes for granted: a script that trains, a loop's data, and jobs to ask about."""

from pathlib import Path

Path("train.py").write_text("""
import sys, time
if sys.argv[1:] == ["--epochs", "3"]:  # this one is there to be cancelled
    time.sleep(600)
print("trained")
""")
batches = [1, 2, 3]
weights = 0


def train(weights, batch):
    return weights + batch


shell.replace("cancel job-7", "cancel job-2")  # noqa: F821 - given by tests.documentation.play
shell.replace("job-7", "job-1")  # noqa: F821
