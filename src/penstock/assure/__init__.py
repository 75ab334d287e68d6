"""What was promised against what happened: histories, checks and verdicts. Pure."""
