"""The conformance suite: `pytest --sandbox=NAME` certifies a sandbox in a sealed laboratory."""

__version__ = "0.1.0"
