"""Which requests to GitHub a `GitHubBinding` lets a sandbox make with the user's credential.

Pure decisions on single requests: whoever holds the credential asks here first. It needs the
package graphql-core (extra `github`).
"""

from sandboxes.egress.github.granted import Granted, Repository
from sandboxes.egress.github.rules import HOSTS, STRIPPED, GitHubRequest, GitHubRules

__all__ = ["HOSTS", "STRIPPED", "GitHubRequest", "GitHubRules", "Granted", "Repository"]
