"""Egress: what really leaves a sandbox, as the laboratory saw it."""

from conformance.requirements.requirement import Requirement

EGR_01 = Requirement(
    "EGR-01",
    "M",
    ("000", "002"),
    "Under `Network.none()` no TCP connection leaves the sandbox, over IPv4 or IPv6, to "
    "an address or to a name.",
)
EGR_02 = Requirement(
    "EGR-02",
    "M",
    ("000", "002"),
    "Under `Network.none()` no UDP datagram and no DNS question leaves the sandbox.",
)
EGR_03 = Requirement(
    "EGR-03",
    "M",
    ("000", "002"),
    "Under `Network.none()` the services on the host's own loopback interface are not reached.",
)
EGR_04 = Requirement(
    "EGR-04",
    "R",
    ("ours",),
    "Under `none()` and `allow()` the host's unix sockets are not reached, neither by "
    "path nor by abstract name.",
)
EGR_05 = Requirement(
    "EGR-05",
    "M",
    ("000", "002"),
    "`Network.none()` also binds the setup script, the commands of hooks and background processes.",
)
EGR_06 = Requirement(
    "EGR-06",
    "M",
    ("000", "002"),
    "Under `Network.all()` HTTPS, plain HTTP and a host name are reached, and another TCP"
    " port too where there is a client for it.",
)
EGR_10 = Requirement(
    "EGR-10",
    "M",
    ("000", "002"),
    "Under `Network.allow()` an HTTPS request to a listed host succeeds with certificate "
    "verification on.",
)
EGR_11 = Requirement(
    "EGR-11",
    "M",
    ("000", "002"),
    "Under `Network.allow()` a plain HTTP request to a listed host is refused.",
)
EGR_12 = Requirement(
    "EGR-12",
    "M",
    ("000", "002"),
    "Under `Network.allow()` every host that is not listed is refused, look-alikes and "
    "URLs that parsers read differently included.",
)
EGR_13 = Requirement(
    "EGR-13",
    "M",
    ("000", "002"),
    "Under `Network.allow()` the address behind a listed name is opened neither as a "
    "literal nor through another name.",
)
EGR_14 = Requirement(
    "EGR-14",
    "M",
    ("000", "002"),
    "Under `Network.allow()` a port of a listed host other than the listed one, 443 by "
    "default, is refused.",
)
EGR_15 = Requirement(
    "EGR-15",
    "M",
    ("000", "002"),
    "Under `Network.allow()` a redirect to an unlisted host, to plain HTTP or to a "
    "private address is not followed to its target.",
)
EGR_16 = Requirement(
    "EGR-16",
    "M",
    ("000", "002"),
    "Private and loopback addresses stay refused under `allow()` and `all()`, as literals"
    " in every spelling and through names, even where the policy names them.",
    documented_for=("BashkitSandbox",),
    advice_unless="blocks_private_addresses",
)
EGR_17 = Requirement(
    "EGR-17",
    "R",
    ("ours",),
    "Where private addresses are blocked, they stay refused against names that rebind and"
    " answers that mix public and private addresses.",
)
EGR_18 = Requirement(
    "EGR-18",
    "M",
    ("000", "002"),
    "`block_private_ips=False` opens the private addresses that the network allows, and "
    "nothing else.",
    documented_for=("BashkitSandbox",),
)
EGR_19 = Requirement(
    "EGR-19",
    "R",
    ("ours",),
    "Proxy variables, client switches and configuration files that a command sets do not "
    "widen what it reaches.",
)
EGR_20 = Requirement(
    "EGR-20",
    "M",
    ("000", "002"),
    "Under `Network.allow()` what is not TLS carries no payload out, not even to port 443"
    " of a listed host.",
)
EGR_21 = Requirement(
    "EGR-21",
    "S",
    ("ours",),
    "Under `Network.allow()` no name outside the list is asked of a resolver outside.",
)
EGR_22 = Requirement(
    "EGR-22",
    "S",
    ("ours",),
    "A TLS connection whose server name or Host header differs from the host that was "
    "allowed is refused.",
)
EGR_23 = Requirement(
    "EGR-23",
    "S",
    ("ours",),
    "A listed host with a wrong, expired or unknown certificate is not reached even by a "
    "client that skips verification.",
)
EGR_24 = Requirement(
    "EGR-24",
    "R",
    ("ours",),
    "A refused request ends by itself, or at its command's own limit with exit code 124, "
    "and does not hang the session.",
)
EGR_25 = Requirement(
    "EGR-25",
    "M",
    ("000", "002"),
    "For any allow list and target the lab sees a request exactly where `Network.reaches`"
    " says so and the address is not one that stays blocked.",
)
EGR_26 = Requirement(
    "EGR-26",
    "S",
    ("ours",),
    "A refusal is visible to the command that met it, by a non-zero exit code or a "
    "message that names the policy.",
)
EGR_30 = Requirement(
    "EGR-30",
    "M",
    ("002",),
    "`EgressPolicy.custom` opens exactly the listed addresses and ranges, IPv4 and IPv6, "
    "and refuses the neighbours across each boundary.",
    documented_for=("MistralSandbox",),
)
EGR_31 = Requirement(
    "EGR-31",
    "R",
    ("ours",),
    "The network policy is in force before the first command, hook or setup script runs.",
)
