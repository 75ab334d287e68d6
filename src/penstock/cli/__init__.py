"""The command `penstock`: one file a command."""
