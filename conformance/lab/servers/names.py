"""The lab's resolver: defined names by their schedule, all others do not exist."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

import dns.exception
import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

if TYPE_CHECKING:
    from conformance.lab.servers.doors import Doors
    from conformance.lab.servers.records import Journal
    from conformance.lab.servers.registry import Registry


class Resolver:
    """Answers questions and records them.

    Args:
        registry: the sites, each with its schedule.
        journal: where questions are recorded.
        doors: those of services that have names of their own.
    """

    def __init__(self, registry: Registry, journal: Journal, doors: Doors) -> None:
        self._registry = registry
        self._journal = journal
        self._doors = doors

    def answer(
        self, data: bytes, local: tuple[str, int], source: tuple[str, int], protocol: str
    ) -> tuple[bytes, float] | None:
        """Answer a message.

        Args:
            data: the message.
            local: where it came to.
            source: where it came from.
            protocol: "udp" or "tcp".

        Returns:
            The answer and the seconds to wait before it, or `None` for silence.
        """
        try:
            query = dns.message.from_wire(data)
            response = dns.message.make_response(query, recursion_available=True)
        except (dns.exception.DNSException, ValueError):
            self._journal.record("dns", local, source, protocol, payload=data)
            return None
        if not query.question:
            self._journal.record("dns", local, source, protocol, payload=data)
            return response.to_wire(), 0.0
        question = query.question[0]
        name = question.name.to_text(omit_final_dot=True).lower()
        kind = dns.rdatatype.to_text(question.rdtype)
        self._journal.record("dns", local, source, protocol, name=name, method=kind)
        return self._resolve(name, kind, question, response)

    def _resolve(
        self, name: str, kind: str, question: dns.rrset.RRset, response: dns.message.Message
    ) -> tuple[bytes, float] | None:
        site = self._registry.by_name(name)
        service = self._doors.answers(name, kind) if site is None else None
        if service is not None:
            if service:
                found = dns.rrset.from_text_list(question.name, 0, "IN", kind, service)
                response.answer.append(found)
            return response.to_wire(), 0.0
        if site is None:
            response.set_rcode(dns.rcode.NXDOMAIN)
            return response.to_wire(), 0.0
        if site.schedule["silent"]:
            return None
        if kind in ("A", "AAAA"):
            family = [text for text in site.answer(kind) if _kind(text) == kind]
            if family:
                answers = dns.rrset.from_text_list(question.name, 0, "IN", kind, family)
                response.answer.append(answers)
        # In the order that was asked for: which address comes first can be what a check is about.
        return response.to_wire(want_shuffle=False), float(site.schedule["delay"])


def _kind(text: str) -> str:
    """What record holds this; none does where a check made it up, such as 127.1."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return ""
    if address.version == 4:
        return "A"
    return "" if address.scope_id else "AAAA"
