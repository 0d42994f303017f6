"""Which requests to GitHub a `GitHubBinding` lets a sandbox make with the user's credential.

The decisions on single requests are pure; `GitHubAuthorizer` makes them in an `EgressProxy`. It
needs the package graphql-core (extra `github`).
"""

from sandboxes.egress.github.authorizer import ENVIRONMENT, GitHubAuthorizer
from sandboxes.egress.github.granted import Granted, Repository
from sandboxes.egress.github.rules import HOSTS, STRIPPED, Decision, GitHubRequest, GitHubRules

__all__ = [
    "ENVIRONMENT",
    "HOSTS",
    "STRIPPED",
    "Decision",
    "GitHubAuthorizer",
    "GitHubRequest",
    "GitHubRules",
    "Granted",
    "Repository",
]
