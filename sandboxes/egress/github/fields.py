"""The GraphQL fields of GitHub that stay inside of one repository, by their kind.

Looked at one by one. Left out is what leads elsewhere: forks, timelines and references (of
other repositories' issues and commits), people's repositories, projects' cards, nodes by id.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PAGES = _words(
    "__typename nodes edges node cursor pageInfo hasNextPage hasPreviousPage endCursor startCursor"
    " totalCount"
)

WORDS = _words(
    # Of everything.
    "__typename id databaseId fullDatabaseId number name title body bodyText bodyHTML description"
    " url resourcePath state stateReason createdAt updatedAt closedAt publishedAt closed locked"
    " color slug login email avatarUrl cursor hasNextPage hasPreviousPage endCursor startCursor"
    " totalCount isDefault position path size"
    # Of a repository.
    " nameWithOwner isPrivate isFork isArchived isEmpty isTemplate isInOrganization isMirror"
    " isDisabled isLocked visibility viewerPermission viewerCanAdminister viewerHasStarred"
    " viewerSubscription hasIssuesEnabled hasWikiEnabled hasProjectsEnabled hasDiscussionsEnabled"
    " mergeCommitAllowed rebaseMergeAllowed squashMergeAllowed deleteBranchOnMerge autoMergeAllowed"
    " forkCount stargazerCount diskUsage homepageUrl pushedAt archivedAt sshUrl mirrorUrl"
    " openGraphImageUrl usesCustomOpenGraphImage isSecurityPolicyEnabled securityPolicyUrl"
    " isBlankIssuesEnabled isUserConfigurationRepository"
    # Of issues, pull requests, reviews and comments.
    " headRefName headRefOid baseRefName baseRefOid isCrossRepository isDraft mergeable merged"
    " mergedAt mergeStateStatus maintainerCanModify additions deletions changedFiles changeType"
    " reviewDecision authorAssociation submittedAt includesCreatedEdit isMinimized"
    " minimizedReason viewerDidAuthor content isPinned isReadByViewer dueOn"
    " isResolved isOutdated line startLine diffSide outdated originalLine diffHunk activeLockReason"
    # Of commits and files.
    " oid abbreviatedOid message messageHeadline messageBody committedDate authoredDate date text"
    " byteSize isBinary isTruncated mode type extension prefix commitUrl treeUrl tarballUrl"
    " zipballUrl"
    # Of checks and releases.
    " context targetUrl status conclusion startedAt completedAt detailsUrl summary isRequired"
    " event runNumber tagName isPrerelease isLatest downloadUrl downloadCount contentType"
    # Of languages, licenses and templates.
    " key nickname spdxId filename about"
)
"""Fields that hold text, a number or nothing."""

IDENTITY = _PAGES | _words(
    "id databaseId login name slug url resourcePath avatarUrl email date isViewer user organization"
)
"""What may be asked of people, teams and organisations."""

_OWN = _PAGES | _words(
    "id databaseId name nameWithOwner owner url resourcePath isPrivate isFork description"
    " hasIssuesEnabled hasWikiEnabled viewerPermission defaultBranchRef"
)

PEOPLE: Mapping[str, frozenset[str]] = MappingProxyType(
    dict.fromkeys(
        _words(
            "owner author assignees assignableUsers mentionableUsers requestedReviewer"
            " headRepositoryOwner mergedBy user users committer participants editor organization"
            " creator actor uploader enabledBy resolvedBy"
        ),
        IDENTITY,
    )
)
"""Fields that hold people, from whom a way leads to all that they own."""

REPOSITORIES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        **dict.fromkeys(
            _words("parent headRepository baseRepository repository templateRepository"), _OWN
        ),
        **dict.fromkeys(_words("project column app topic"), _words("__typename id name")),
        "projectCards": _PAGES | _words("project column"),
    }
)
"""Fields that hold something else than this repository: little more than its name is told."""

_WAYS = _PAGES | _words(
    "issue issues pullRequest pullRequests issueOrPullRequest comments reviews latestReviews"
    " reviewThreads reviewRequests labels label milestone milestones reactionGroups commits commit"
    " files ref refs defaultBranchRef target object tree entries history parents statusCheckRollup"
    " contexts checkSuite checkSuites checkRuns workflowRun workflow releases latestRelease release"
    " releaseAssets tagCommit languages primaryLanguage licenseInfo repositoryTopics issueTemplates"
    " pullRequestTemplates autoMergeRequest potentialMergeCommit mergeCommit pinnedIssues"
)

INSIDE = WORDS | _WAYS | PEOPLE.keys() | REPOSITORIES.keys()
"""What may be asked of a repository."""

ROOTS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "__typename": frozenset(),
        # The schema is the same for all, and published.
        "__type": _words(
            "__typename kind name description fields args type ofType enumValues inputFields"
            " possibleTypes interfaces isDeprecated deprecationReason defaultValue"
        ),
        "viewer": _words("__typename id databaseId login name email url avatarUrl"),
        "rateLimit": _words("__typename limit cost remaining resetAt used nodeCount"),
    }
)
"""What may be asked beside repositories."""
