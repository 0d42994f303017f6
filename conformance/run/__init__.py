"""One run: from the options of `pytest` to the verdict of each check."""
