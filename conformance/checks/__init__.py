"""The checks: plain functions over `target` and `lab`, each marked with what it verifies."""
