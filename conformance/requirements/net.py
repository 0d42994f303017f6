"""Network values: what the policy types accept, mean and compare to."""

from conformance.requirements.requirement import Requirement

NET_01 = Requirement(
    "NET-01",
    "M",
    ("000",),
    "`Network.none()`, `all()` and `allow(hosts=...)` equal what the constructor builds "
    "from the same mode and hosts, and `none` is its default.",
)
NET_02 = Requirement(
    "NET-02",
    "M",
    ("000", "002"),
    "An allow-list entry is a host name or an IP address with an optional port; a scheme,"
    " a path or a wildcard raises.",
)
NET_03 = Requirement(
    "NET-03",
    "R",
    ("ours",),
    "An entry also raises for user info, a query, a fragment, white space, control "
    "characters, impossible labels, names or ports, IPv4 in other than dotted decimal "
    "form and IPv6 with an ambiguous port; `reaches` raises on the same texts.",
)
NET_04 = Requirement(
    "NET-04",
    "R",
    ("ours",),
    "Hosts go with mode `allow` alone, which needs at least one of them, and a plain text"
    " in their place raises.",
)
NET_05 = Requirement(
    "NET-05",
    "M",
    ("000",),
    "`reaches` is false for every entry under `none()`, true under `all()`, and under "
    "`allow()` true exactly for the listed hosts and ports.",
)
NET_06 = Requirement(
    "NET-06",
    "R",
    ("ours",),
    "An entry without a port means port 443, in an allow list and in `reaches` alike.",
)
NET_07 = Requirement(
    "NET-07",
    "R",
    ("ours",),
    "Entries compare in normal form: case folded, one trailing dot dropped, IDNA "
    "A-labels, compressed IPv6; each accepted entry reaches itself.",
)
NET_08 = Requirement(
    "NET-08",
    "M",
    ("000",),
    "An entry does not reach a host that merely contains it, begins with it or ends with it.",
)
NET_09 = Requirement(
    "NET-09",
    "M",
    ("002",),
    "`EgressPolicy.custom` takes at least one IP address or CIDR range; names, URLs and "
    "every spelling of a /0 range raise.",
)
NET_10 = Requirement(
    "NET-10",
    "R",
    ("ours",),
    "`EgressPolicy.custom` also refuses ranges that together cover a whole address "
    "family, and ranges with host bits, naming the range that was meant.",
)
NET_11 = Requirement(
    "NET-11",
    "M",
    ("000", "002"),
    "`EgressPolicy.block_all()`, `allow_all()` and `custom()` equal what the constructor "
    "builds; `egress` takes `custom()` alone, never beside `Network.all()`, and "
    "`egress_policy` tells which of the three is in force.",
)
NET_12 = Requirement(
    "NET-12",
    "R",
    ("ours",),
    "The policy types are immutable, hashable and equal by value.",
)
