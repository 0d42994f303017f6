"""The sandbox under test: found, declared, called, and blamed for what is its own."""
