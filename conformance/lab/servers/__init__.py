"""The lab's witnesses: a process of its own that answers for the internet and for the host."""
