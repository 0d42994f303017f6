"""Benchmarks are collected where what they are measured with is installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("pytest_benchmark") else ["test_*.py"]
