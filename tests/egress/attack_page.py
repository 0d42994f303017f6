"""The page of all attacks: `python -m tests.egress.attack_page > docs/egress-attacks.md`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.egress import (
    test_answers,
    test_bindings,
    test_clients,
    test_endurance,
    test_fuzz,
    test_github_wire,
    test_names,
    test_namespace,
    test_plain,
    test_requests,
    test_tunnels,
)
from tests.egress.world import SECRET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MODULES = (
    *(test_requests, test_tunnels, test_plain, test_names, test_answers, test_bindings),
    *(test_endurance, test_clients, test_fuzz, test_namespace, test_github_wire),
)

_HEAD = """\
# Attacks on the egress proxy

What `sandboxes.egress` was tried with, what happens, and the test in `tests/egress` that
proves it, printed by `python -m tests.egress.attack_page`. Tests judge by what origins
logged, to the byte, and by what was resolved and dialled. A status is the proxy's own
answer; a refusal has one line that names the fact and the remedy.

## Decided so

- A hidden server name (ECH), real or pretended, is refused under `allow()`: the name that
  counts could not be read. So is a TLS client that names no host. Clients of an IP address
  must name none.
- Under `all()` a tunnel carries whatever it likes, and plain HTTP passes; under `allow()`
  tunnels carry TLS records only.
- A path is read in every way that servers are known to read it: decoded or not, dots
  resolved, slashes folded, back-slashes turned, parameters dropped. If these do not agree on
  the bindings, the request is refused. If none lies under a prefix, it passes without secret.
- A bound header of the client's is taken out on the whole host, also on other paths.
- Answers of a host with bindings are searched for its secrets, of 8 characters or more, as
  they are and as URLs and JSON write them; each is covered with as many asterisks. They are
  asked for whole and not compressed: Range, If-Range and Accept-Encoding are taken out.
- A CONNECT's Host header counts for nothing: many clients name the proxy in it.

## Not closed

- Which host a request names within a tunnel that the proxy does not open (domain fronting),
  or a second ClientHello that its server asked for: list hosts whose operator does not serve
  other people's names on the same address.
- A secret that an origin sends back in a shape of its own (base64, reversed, in parts).
- Whether a host without bindings has a valid certificate: its client has to check it.
"""


@dataclass(frozen=True, slots=True)
class Attack:
    """One test, or one for each entry of a table.

    Attributes:
        test: The test.
        what: What happens; `{}` stands for what the table says.
        table: Attacks by name.
        title: What is tried; with a table, what all of it has in common.
        told: What is said of an entry of the table.
    """

    test: Callable[..., None]
    what: str
    table: Iterable[str] = ()
    title: str = ""
    told: Callable[[Any], object] = field(default=lambda entry: "")

    def rows(self) -> list[str]:
        name = f"{self.test.__module__.rpartition('.')[2]}::{self.test.__name__}"
        entries = self.table if isinstance(self.table, dict) else dict.fromkeys(self.table)
        if not entries:
            return [_row(self.title, self.what, name)]
        before = f"{self.title}: " if self.title else ""
        return [
            _row(f"{before}{key}", self.what.format(self.told(entry)), f"{name}[{key}]")
            for key, entry in entries.items()
        ]


def _row(*cells: str) -> str:
    attack, what, test = (cell.replace("|", "\\|") for cell in cells)
    return f"| {attack} | {what} | `{test}` |"


def second(entry: tuple[object, object]) -> object:
    return entry[1]


r, t, n = test_requests, test_tunnels, test_names
a, b, e = test_answers, test_bindings, test_endurance
p, c, g = test_plain, test_clients, test_github_wire
SECTIONS: dict[str, list[Attack]] = {
    "Requests to a host with a binding": [
        Attack(
            r.test_a_doubtful_request_is_refused_before_anything_is_dialled,
            "{}; nothing is dialled",
            r.REFUSED,
            told=second,
        ),
        Attack(
            r.test_a_broken_body_never_ends_at_the_origin,
            "400; the origin is cut off and gets no end",
            r.BROKEN_BODIES,
        ),
        Attack(
            r.test_a_body_without_an_end_is_given_up,
            "408; the origin is cut off and gets no end",
            r.ENDLESS_BODIES,
        ),
        Attack(
            r.test_what_would_steer_is_taken_out,
            "passes; the origin gets {}",
            r.NEUTRALISED,
            told=lambda entry: (
                f"{entry[1].decode()}: {entry[2][0].decode().replace(SECRET, '(secret)')}"
                if entry[2]
                else f"no {entry[1].decode()}"
            ),
        ),
        Attack(
            r.test_pipelined_requests_are_judged_one_by_one,
            "each is judged and answered in turn; the first refused one ends the connection",
            title="pipelined requests, good and bad",
        ),
        Attack(
            r.test_a_request_in_a_body_stays_a_body,
            "stays a body; what is longer than it said is a request that is judged",
            title="request hidden in a body",
        ),
        Attack(
            r.test_a_connection_that_was_good_is_judged_again_for_each_request,
            "421, and the connection ends",
            title="bad request after good ones",
        ),
        Attack(
            test_fuzz.test_what_reaches_an_origin_is_clear_and_rightful,
            "what reaches the origin is clear, and has the secret only under the prefix",
            title="generated edits of requests",
        ),
        Attack(
            r.test_the_secret_goes_to_its_own_host_alone,
            "the redirect is handed to the client; what it asks for then has no secret",
            title="redirect to another host",
        ),
    ],
    "Bindings": [
        Attack(
            b.test_what_cannot_be_applied_is_refused,
            "refused when the proxy is built",
            b.REFUSED,
            "binding",
        ),
        Attack(
            b.test_an_unusable_secret_is_named_and_not_shown,
            "refused when the proxy is built; the name is in the message, the value is not",
            b.UNUSABLE,
            "secret",
        ),
        Attack(
            b.test_a_binding_out_of_reach_is_refused,
            "refused when the proxy is built",
            title="binding to a host that the network does not reach",
        ),
        Attack(
            b.test_a_path_that_two_prefixes_could_claim_gets_no_secret,
            "400; nothing is dialled",
            title="path between two prefixes",
        ),
        Attack(
            b.test_no_spelling_takes_a_header_out_of_its_prefix,
            "a server of the ordinary kind agrees wherever a secret is added",
            title="generated spellings of paths",
        ),
    ],
    "Tunnels": [
        Attack(
            t.test_a_tunnel_elsewhere_is_refused_and_nothing_is_asked_or_dialled,
            "{}; nothing is resolved or dialled",
            t.CONNECTS,
            "CONNECT",
            second,
        ),
        Attack(
            t.test_an_odd_word_to_the_proxy_is_refused,
            "{}; nothing is resolved or dialled",
            t.ODD_CONNECTS,
            "CONNECT",
            second,
        ),
        Attack(
            t.test_the_host_header_of_a_tunnel_counts_for_nothing,
            "the tunnel goes where CONNECT says",
            title="CONNECT: Host of another",
        ),
        Attack(
            t.test_none_refuses_every_tunnel,
            "403; nothing is resolved or dialled",
            title="CONNECT under `none()`",
        ),
        Attack(
            t.test_another_server_name_is_refused_with_an_alert,
            "a TLS alert; the origin gets nothing",
            t.NAMES,
            "server name",
        ),
        Attack(
            t.test_a_tunnel_that_begins_with_anything_else_carries_nothing,
            "a TLS alert; the origin gets nothing",
            t.NO_HELLO,
            "first words",
        ),
        Attack(
            t.test_what_follows_a_right_hello_is_tls_or_cut,
            "cut; the origin has the ClientHello alone",
            title="plain HTTP after a right ClientHello",
        ),
        Attack(
            t.test_a_hello_sent_with_the_connect_is_judged_as_any_other,
            "taken for the tunnel's first bytes, and judged as these",
            title="bytes sent with the CONNECT",
        ),
        Attack(
            t.test_an_address_is_asked_for_without_a_name,
            "a TLS alert; the origin gets nothing",
            title="server name in a tunnel to an address",
        ),
        Attack(
            t.test_http_2_is_offered_in_no_opened_tunnel,
            "HTTP/1.1 is agreed on",
            title="HTTP/2 by ALPN to a host with a binding",
        ),
    ],
    "Plain HTTP": [
        Attack(
            p.test_plain_http_is_refused,
            "403; nothing is resolved or dialled",
            title="plain HTTP to a listed host, also on 443",
        ),
        Attack(
            p.test_a_request_of_two_minds_is_refused,
            "400 or 405; nothing is resolved or dialled",
            p.DISAGREEING,
            "under `all()`",
        ),
        Attack(
            p.test_all_lets_it_through_without_any_secret,
            "passes under `all()`, without the secret",
            title="plain HTTP to a host with a binding",
        ),
    ],
    "Names and addresses": [
        Attack(
            n.test_a_private_address_is_known_in_every_spelling,
            "private",
            n.PRIVATE,
        ),
        Attack(
            n.test_what_the_contract_counts_as_private_is_private,
            "private here too",
            title="generated addresses that the suite's own model counts as private",
        ),
        Attack(
            n.test_an_address_in_another_is_judged_as_alone,
            "judged as the IPv4 address",
            title="generated IPv4 addresses in IPv6 ones",
        ),
        Attack(
            n.test_a_name_with_a_private_address_is_refused,
            "403; nothing is dialled, and the address is not told",
            n.ANSWERS,
            "name that resolves to",
        ),
        Attack(
            n.test_a_listed_private_address_is_refused,
            "403; nothing is dialled",
            title="private address that the network lists",
        ),
        Attack(
            n.test_a_bound_host_with_a_private_address_is_refused_inside_of_the_tunnel,
            "403; nothing is dialled",
            title="host with a binding that resolves to a private address",
        ),
        Attack(
            n.test_a_name_is_resolved_once_and_what_was_judged_is_dialled,
            "what was judged is dialled; the next connection is judged anew",
            title="DNS rebinding",
        ),
    ],
    "Origins": [
        Attack(
            a.test_an_origin_with_a_wrong_certificate_gets_no_request,
            "502; no request is sent",
            a.CERTIFICATES,
            "certificate",
        ),
        Attack(a.test_an_answer_of_no_use_is_a_502, "502", a.UNUSABLE, "answer"),
        Attack(
            a.test_an_answer_cut_short_does_not_look_whole,
            "the client is cut off as well",
            title="answer that is cut short",
        ),
        Attack(
            a.test_what_an_origin_says_unasked_is_not_the_next_answer,
            "dropped; the next request goes out on a new connection",
            title="second answer to one request",
        ),
        Attack(
            a.test_early_hints_and_trailers_end_at_the_proxy,
            "dropped",
            title="early hints and trailers",
        ),
        Attack(
            a.test_an_origin_that_echoes_the_secret_does_not_show_it,
            "covered or dropped",
            a.ECHOES,
            "echo of the secret",
        ),
        Attack(
            a.test_the_echo_of_the_whole_head_is_covered_and_its_length_stays,
            "covered",
            title="echo of the whole request",
        ),
        Attack(
            a.test_what_was_echoed_once_is_covered_on_other_paths_too,
            "covered",
            title="echo on a path without the secret",
        ),
        Attack(
            a.test_a_secret_is_covered_in_answers_of_other_bound_hosts_too,
            "covered",
            title="echo by another host with a binding",
        ),
        Attack(
            a.test_where_a_body_is_cut_makes_no_difference,
            "covered as if it came whole",
            title="generated pieces of an echo",
        ),
    ],
    "Endurance": [
        Attack(
            e.test_a_client_that_says_half_a_request_is_told_so, "408", title="half of a request"
        ),
        Attack(
            e.test_a_client_that_stalls_is_left,
            "left after a time; the origin gets nothing",
            e.STALLS,
            "client that stalls after",
        ),
        Attack(
            e.test_a_client_that_stops_in_its_handshake_is_left,
            "left after a time; nothing is dialled",
            title="client that stops in its handshake",
        ),
        Attack(
            e.test_an_origin_that_stays_silent_is_given_up,
            "502, or the tunnel ends",
            title="origin that stays silent",
        ),
        Attack(
            e.test_a_name_or_address_that_never_answers_is_given_up,
            "504",
            ("resolve", "dial"),
            "no answer to",
        ),
        Attack(
            e.test_what_a_client_does_not_take_is_not_piled_up,
            "the origin is held back, and cut off after a time",
            title="endless answer that the client does not read",
        ),
        Attack(
            e.test_a_client_that_goes_takes_its_origin_with_it,
            "the origin's connection ends as well",
            title="client that goes away",
        ),
        Attack(e.test_more_clients_than_it_serves_are_told_so, "503", title="too many connections"),
        Attack(
            e.test_memory_stays_flat_over_many_requests, "memory stays flat", title="many requests"
        ),
        Attack(e.test_the_secret_is_in_no_log, "not there", title="secret in logs and in `repr()`"),
        Attack(
            e.test_an_unforeseen_error_is_logged_by_its_type_alone,
            "its type alone is logged",
            title="error of an unforeseen kind",
        ),
    ],
}

SECTIONS["Requests to GitHub"] = [
    Attack(
        g.test_nothing_arrives_of_a_request_beyond_the_list,
        "403; nothing is dialled",
        title="another repository, the account, copies, settings: each row of the decisions",
    ),
    Attack(
        g.test_nothing_arrives_of_what_is_never_granted,
        "400, 403 or 405; nothing is dialled",
        title="paths that can be read in two ways, pages, other protocols: each row",
    ),
    Attack(
        g.test_other_hosts_of_githubs_get_no_credential,
        "passes without credential",
        title="a host that GitHub sends on to, and plain HTTP",
    ),
    Attack(
        g.test_a_client_says_neither_who_it_is_nor_what_is_meant_instead,
        "taken out",
        g.SMUGGLED,
        title="of the client's own",
    ),
    Attack(
        g.test_the_connection_header_takes_no_credential_out,
        "400; nothing is dialled",
        title="Connection that names the credential",
    ),
    Attack(
        g.test_a_graphql_request_is_sent_as_it_was_judged,
        "written anew as JSON, without the client's type and encoding",
        title="GraphQL body that a server could read otherwise",
    ),
    Attack(
        g.test_a_rename_is_not_followed_whatever_the_client_asks_for,
        "followRenames is False",
        title="GraphQL by a former name",
    ),
    Attack(
        g.test_a_graphql_body_is_judged_however_it_is_framed,
        "read whole and judged; nothing is dialled before",
        title="GraphQL in chunks, behind 100-continue, pipelined",
    ),
    Attack(
        g.test_nothing_of_a_refused_graphql_request_is_sent,
        "400 or 403 in GraphQL's shape; nothing is dialled",
        title="GraphQL beyond the list, or none",
    ),
    Attack(
        g.test_a_graphql_body_is_bounded_in_length_and_time,
        "413 or 408; nothing is dialled",
        title="GraphQL without an end",
    ),
    Attack(
        g.test_refusals_tell_nothing_and_have_the_shape_of_the_interface,
        "one answer for all",
        title="is there such a repository?",
    ),
    Attack(
        g.test_numbers_are_asked_for_once_and_a_new_name_is_none_of_the_listed_ones,
        "403 unless it is a listed repository's",
        title="a repository by its number, or behind a rename",
    ),
    Attack(
        g.test_what_a_server_echoes_of_the_credential_is_covered,
        "covered, in both forms",
        title="an answer that shows the credential",
    ),
    Attack(
        g.test_without_a_credential_nothing_is_sent,
        "502; nothing is dialled",
        title="a credential that cannot be renewed",
    ),
    Attack(
        g.test_what_is_no_headers_value_is_not_sent,
        "502; nothing is dialled",
        title="a credential that is no header's value",
    ),
    Attack(
        g.test_what_an_authorizer_cannot_hold_is_refused_when_the_proxy_is_built,
        "refused when the proxy is built",
        title="two who add one header, or a host out of reach",
    ),
    Attack(
        g.test_an_upload_is_out_of_reach_where_its_host_is_not_listed,
        "403; nothing is dialled",
        title="an upload where its host is not listed",
    ),
]

# They show that what is right passes, or how the proxy is used.
CONTROLS = {
    r.test_large_bodies_pass_unchanged_both_ways,
    a.test_a_question_is_asked_again_where_a_kept_connection_was_closed,
    b.test_each_header_is_of_the_longest_prefix,
    b.test_a_binding_is_of_its_port_alone,
    b.test_an_address_can_be_bound,
    t.test_other_spellings_of_a_listed_host_are_let_through,
    t.test_a_right_hello_passes_to_the_byte,
    t.test_all_opens_tunnels_for_whatever_they_carry,
    t.test_a_listed_port_is_one_of_its_own,
    n.test_its_neighbours_are_public,
    n.test_neighbours_of_private_ranges_are_public,
    n.test_the_switch_opens_what_the_network_allows_and_nothing_else,
    n.test_the_next_address_is_tried_where_one_does_not_answer,
    n.test_what_is_not_there_is_said_to_be_so,
    e.test_one_direction_may_be_silent_while_the_other_is_not,
    e.test_last_words_wait_for_a_client_that_reads_late,
    e.test_a_hundred_at_once_are_all_served,
    e.test_nothing_is_left_when_it_closes,
    e.test_open_tunnels_end_with_it,
    test_namespace.test_what_is_inside_is_served_from_outside,
    test_namespace.test_nobody_listens_in_the_network_of_this_process_by_mistake,
    test_namespace.test_a_process_that_is_gone_is_named,
    test_namespace.test_a_port_that_is_taken_is_said_to_be,
    c.test_a_client_reaches_listed_hosts,
    c.test_a_client_is_told_why_it_does_not_reach_another,
    c.test_openssl_sees_the_refusal_of_a_name,
    c.test_plain_http_is_refused_in_words,
    g.test_each_granted_request_arrives_with_the_credential_in_its_hosts_form,
    g.test_all_that_the_user_reaches_is_granted_by_all,
    g.test_where_github_does_not_say_which_number_is_meant_it_is_asked_again,
    g.test_a_credential_is_renewed_before_it_ends_and_asked_for_once_at_a_time,
    g.test_a_header_binding_goes_along_where_it_is_for_another_header,
    g.test_a_refusal_names_nothing_that_came_with_a_secret,
}


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, attacks in SECTIONS.items():
        parts += [f"## {title}\n", "| attack | what happens | test |", "|---|---|---|"]
        parts += [row for attack in attacks for row in attack.rows()]
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(page())
