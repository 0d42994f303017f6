"""Sandbox Proxy and Mistral's API, of the lab's own, for subjects that use them.

Its protocol is that of docs/sandbox-proxy.md. A gate (`gate`) in front of one egress proxy for
each session (`sessions`); an API (`api`) that hands out sessions and otherwise tells as whom it
was asked. Identities, what goes wrong for each, and the record are had through `client`.
"""
