from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from conformance import requirements
from conformance.requirements import (
    ALL,
    AREAS,
    EGR_11,
    EGR_16,
    SOURCES,
    TMO_04,
    UnknownRequirement,
    covers,
    select,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# Every id that was ever issued, with its level. Append only: an id is never reused.
ISSUED = (
    ("CFG", "M", "01 02 03 04 05 06 07 08 09 10 15 16 20 21"),
    ("CFG", "R", "11 12 13 14 18 19"),
    ("CFG", "S", "17"),
    ("NET", "M", "01 02 05 08 09 11"),
    ("NET", "R", "03 04 06 07 10 12"),
    ("EGR", "M", "01 02 03 05 06 10 11 12 13 14 15 16 18 20 25 30"),
    ("EGR", "R", "04 17 19 24 31"),
    ("EGR", "S", "21 22 23 26"),
    ("BND", "M", "02 03 06 07 09 10 12 13 14 15 16 18 19 20"),
    ("BND", "R", "01 04 05 08 11 17 23 24"),
    ("BND", "S", "21 22"),
    ("EXE", "M", "01 06 11 12"),
    ("EXE", "R", "02 03 04 05 07 08 09 10"),
    ("TMO", "M", "01 02 04 06 07"),
    ("TMO", "R", "03 05 08 09 10 11 12 13"),
    ("FIL", "M", "01"),
    ("FIL", "R", "02 03 04"),
    ("FIL", "S", "05"),
    ("ACC", "M", "01 02 03 04 05 06"),
    ("LIF", "M", "01 05 07 08 10 12 13 16"),
    ("LIF", "R", "19 02 03 04 06 09 11 20 14 15 17 18 21"),
    ("HOK", "M", "01 02 03 04 05 06 07 08 09 10 11 12"),
    ("HOK", "R", "13 15 16 17 18"),
    ("HOK", "S", "14"),
    ("PRC", "M", "01 02 04"),
    ("PRC", "R", "03 05 06 07"),
)  # fmt: skip
LEVELS = {
    f"{area}-{number}": level for area, level, numbers in ISSUED for number in numbers.split()
}


@dataclass(frozen=True)
class Subject:
    class_name: str = "Other"
    facts: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))

    def fact(self, name: str) -> bool:
        return self.facts.get(name, False)


def test_every_id_ever_issued_is_there_with_its_level() -> None:
    assert {name: entry.level for name, entry in ALL.items()} == LEVELS
    assert len(LEVELS) == 164


@pytest.mark.parametrize("name", ALL)
def test_a_requirement_is_one_sentence_with_sources_and_a_constant(name: str) -> None:
    entry = ALL[name]
    assert getattr(requirements, name.replace("-", "_")) is entry
    assert entry.text.endswith(".")
    assert "\n" not in entry.text
    assert "  " not in entry.text
    assert entry.sources
    assert set(entry.sources) <= set(SOURCES)


def test_no_two_requirements_say_the_same() -> None:
    assert len({entry.text for entry in ALL.values()}) == len(ALL)


def test_what_is_documented_for_one_backend_is_a_rule_of_ours_elsewhere() -> None:
    assert TMO_04.level_for(Subject("LocalDockerSandbox")) == "M"
    assert TMO_04.level_for(Subject("SomebodysSandbox")) == "R"
    assert EGR_11.level_for(Subject("SomebodysSandbox")) == "M"


def test_private_addresses_are_advice_only_to_those_who_promise_nothing() -> None:
    promise = MappingProxyType({"blocks_private_addresses": True})
    assert EGR_16.level_for(Subject("BashkitSandbox")) == "M"
    assert EGR_16.level_for(Subject("Other", promise)) == "R"
    assert EGR_16.level_for(Subject("Other")) == "S"


def test_a_selection_takes_ids_and_areas_in_any_case_and_gives_them_in_order() -> None:
    chosen = select("hok-02, exe_01,Acc")
    assert chosen == ("EXE-01", "ACC", "HOK-02")
    assert [name for name in ALL if covers(chosen, name)] == [
        "EXE-01",
        *(name for name in ALL if name.startswith("ACC-")),
        "HOK-02",
    ]


@pytest.mark.parametrize("text", ["EGR-99", "EG", "", ",", "EGR-11;NET"])
def test_an_unknown_selection_is_refused_with_the_areas(text: str) -> None:
    with pytest.raises(UnknownRequirement) as caught:
        select(text)
    message = str(caught.value)
    assert "\n" not in message
    assert all(area in message for area in AREAS)


def test_a_misspelled_id_is_answered_with_near_ones() -> None:
    with pytest.raises(UnknownRequirement, match="EGR-11"):
        select("EGR-111")
