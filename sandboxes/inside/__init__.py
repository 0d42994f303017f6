"""Programs that run inside a sandbox, sent there as text: standard library only, Python 3.7 on."""
