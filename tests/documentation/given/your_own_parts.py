"""What the page of own parts takes for granted: a trace, and a placer that was made as the policy was."""

import shutil

shutil.copy("examples/jobs.tsv", "jobs.tsv")
shell.run("fairway new placer my-placer")  # noqa: F821 - given by tests.documentation.play
