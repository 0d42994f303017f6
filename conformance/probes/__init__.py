"""What runs inside a sandbox to try to get out of it."""
