"""What the page of experiments takes for granted: a policy of the reader's own."""

shell.run("fairway new policy my-policy")  # noqa: F821 - given by tests.documentation.play
