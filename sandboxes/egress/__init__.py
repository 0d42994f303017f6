"""A forward proxy for sandboxes: it holds the network policy, and adds header bindings.

It needs the packages of the extra `egress`: a sandbox that uses it declares
`optional_packages = {"cryptography": "egress", "h11": "egress"}`, and imports it when it opens.
"""

from sandboxes.egress.addresses import is_private
from sandboxes.egress.authorizers import Answered, Ask, Asked, Authorizer, Granted
from sandboxes.egress.credentials import Credential, Issued
from sandboxes.egress.denied import Denied
from sandboxes.egress.inside import listening_inside
from sandboxes.egress.limits import ProxyLimits
from sandboxes.egress.origins import Dial, Resolve
from sandboxes.egress.proxy import EgressProxy

__all__ = [
    "Answered",
    "Ask",
    "Asked",
    "Authorizer",
    "Credential",
    "Denied",
    "Dial",
    "EgressProxy",
    "Granted",
    "Issued",
    "ProxyLimits",
    "Resolve",
    "is_private",
    "listening_inside",
]
