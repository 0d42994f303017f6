"""Ready-made pieces of agents."""
