"""CFG: which access a constructor takes, refuses and gives where none is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from conformance.marks import verifies
from conformance.probes import choices
from conformance.probes.choices import beside, networks
from conformance.requirements import CFG_04, CFG_05
from conformance.strategies.each import each
from conformance.verdicts import NotApplicable, Violation
from sandboxes.contract import ACCESS_LEVELS

if TYPE_CHECKING:
    from conformance.subject.targets import Target


@verifies(CFG_04)
@given(pick=st.integers(0, len(ACCESS_LEVELS) - 1))
@each("pick", range(len(ACCESS_LEVELS) - 1))
def test_a_wider_access_is_refused(target: Target, pick: int) -> None:
    """The constructor refuses an `access` wider than `supported_access`, whatever else it gets."""
    declared = target.declared.access
    wider = [level for level in ACCESS_LEVELS if choices.wider(target, level)]
    if not wider:
        raise NotApplicable("full access is declared, so there is none wider to refuse")
    access = wider[pick % len(wider)]
    for others in networks(target):
        if target.refusal(access=access, **others) is None:
            raise Violation(
                f'the constructor accepted access="{access}" and declares "{declared}"'
                + beside(others),
                remedy="raise from the constructor for an access wider than supported_access",
            )
    choices.accepts_what_is_declared(target)


@verifies(CFG_05)
def test_no_access_option_means_the_widest(target: Target) -> None:
    """`access` left out, or `None`, gives the widest level that is declared."""
    widest = target.declared.access
    spellings = [{}, {"access": None}] if target.has_option("access") else [{}]
    for others in networks(target):
        for spelling in spellings:
            got = target.build(**spelling, **others).access
            if got != widest:
                raise Violation(
                    f"built with {spelling or 'no access'} it has access={got!r}, "
                    f"and declares {widest!r}{beside(others)}",
                    remedy="take a missing access as supported_access",
                )
