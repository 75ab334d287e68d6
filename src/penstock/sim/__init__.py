"""A whole node on a fake disk, a fake network and a fake clock, under one seed."""
