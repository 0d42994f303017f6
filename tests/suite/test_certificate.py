from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

import conformance
from conformance.report.certificate import certificate, digest, schema, to_text
from conformance.report.subject import describe
from conformance.requirements import ALL
from conformance.run.plan import Plan
from conformance.run.progress import CheckResult, Records
from tests.suite.subjects import Echo

if TYPE_CHECKING:
    from pathlib import Path

KEYS = [
    "schema_version", "subject", "suite", "environment", "lab", "profile", "seed", "scope",
    "outcome", "headline", "requirements",
]  # fmt: skip
REQUIREMENT_KEYS = [
    "id", "level", "source", "verdict", "checks", "examples", "live_examples", "seconds",
    "message", "example", "witness", "reproduce",
]  # fmt: skip


def plan(**changes: Any) -> Plan:
    fields: dict[str, Any] = {
        "sandboxes": ["box"],
        "options": {"image": "x"},
        "scopes": {},
        "profile": "standard",
        "lab": "auto",
        "seed": 42,
        "arguments": [],
        "reproduce": ['--sandbox-option=image="x"'],
        "import_first": [],
        "import_last": [],
    }
    return Plan(**{**fields, **changes})


def records(*names: str) -> Records:
    facts = dict.fromkeys(
        ("opens", "isolated", "has_processes", "blocks_private_addresses", "supports_resume"), True
    )
    found = Records(lab={"mode": "sealed", "missing": {}})
    for name in names:
        found.subjects[name] = {
            "event": "subject",
            "name": name,
            "class": "package.box:Box",
            "class_name": "Box",
            "version": "1.2",
            "options": {"image": "x"},
            "declared": {
                "access": "full",
                "network": ["allow", "none"],
                "header_bindings": [],
                "facts": facts,
            },
        }
        for number, verdict in (("01", "pass"), ("02", "fail")):
            nodeid = f"test_x.py::test_{number}[{name}]"
            found.checks[nodeid] = {
                "subject": name,
                "ids": [f"EGR-{number}"],
                "in_scope": True,
            }
            found.results[nodeid] = CheckResult(
                nodeid=nodeid, verdict=verdict, seconds=0.5, examples=30, live_examples=20
            )
    return found


def test_a_certificate_has_the_published_keys_in_order() -> None:
    content = certificate(plan(), records("box"))
    assert isinstance(content, dict)
    assert list(content) == KEYS
    assert [list(entry) for entry in content["requirements"]] == [REQUIREMENT_KEYS] * len(ALL)
    assert list(content["subject"]) == ["name", "class", "version", "options", "declared"]
    assert list(content["suite"]) == ["version", "digest"]


def test_the_keys_of_the_schema_are_those_of_the_certificate() -> None:
    definitions = schema()["$defs"]
    assert definitions["certificate"]["required"] == KEYS
    assert definitions["requirement"]["required"] == REQUIREMENT_KEYS


def test_several_subjects_give_a_list() -> None:
    content = certificate(plan(sandboxes=["box", "other"]), records("box", "other"))
    assert isinstance(content, list)
    assert [entry["subject"]["name"] for entry in content] == ["box", "other"]
    assert to_text(content).startswith("[")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("outcome", "passed"),
        ("seed", "42"),
        ("scope", []),
        ("requirements", []),
        ("surprise", True),
        ("lab", {"mode": "home"}),
    ],
)
def test_no_certificate_is_written_that_breaks_its_schema(key: str, value: Any) -> None:
    content = certificate(plan(), records("box"))
    assert isinstance(content, dict)
    to_text(content)
    with pytest.raises(jsonschema.ValidationError):
        to_text({**content, key: value})


def test_the_headline_names_subject_outcome_scope_posture_lab_and_seed() -> None:
    content = certificate(plan(), records("box"))
    assert isinstance(content, dict)
    assert content["headline"] == (
        "box: not certified: 1 of 2 requirements hold, 1 fail | scope: default (2 ids) | "
        "posture: network none/allow, isolated, processes | lab: sealed | seed: 42"
    )


def test_a_selected_scope_is_named_in_the_headline() -> None:
    content = certificate(plan(scopes={"box": ["EGR-01"]}), records("box"))
    assert isinstance(content, dict)
    assert content["scope"] == ["EGR-01"]
    assert "| scope: EGR-01 (1 id) |" in content["headline"]
    assert content["outcome"] == "certified"


def test_an_area_stands_for_its_ids_that_have_a_check() -> None:
    content = certificate(plan(scopes={"box": ["EGR"]}), records("box"))
    assert isinstance(content, dict)
    assert content["scope"] == ["EGR-01", "EGR-02"]
    assert "| scope: EGR (2 ids) |" in content["headline"]


def test_an_id_that_has_no_check_leaves_its_run_partial() -> None:
    content = certificate(plan(scopes={"box": ["EGR-01", "PRC-01"]}), records("box"))
    assert isinstance(content, dict)
    assert content["scope"] == ["EGR-01", "PRC-01"]
    assert content["outcome"] == "partial"


def test_the_line_to_reproduce_can_be_pasted_into_a_shell() -> None:
    content = certificate(plan(), records("box"))
    assert isinstance(content, dict)
    assert content["requirements"][list(ALL).index("EGR-02")]["reproduce"] == (
        "pytest --sandbox=box --requirement=EGR-02 --hypothesis-seed=42 "
        "'--sandbox-option=image=\"x\"'"
    )


def test_the_digest_changes_with_any_module_and_with_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conformance, "__file__", str(tmp_path / "__init__.py"))
    modules = ("checks/test_a.py", "requirements/egr.py", "lab/seal.py", "verdicts.py")
    for name in modules:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    first = digest()
    (tmp_path / "cached.pyc").write_text("y")
    assert digest() == first
    seen = {first}
    for name in modules:
        (tmp_path / name).write_text("y")
        seen.add(digest())
    assert len(seen) == len(modules) + 1


def test_options_that_name_a_credential_are_hidden() -> None:
    target = SimpleNamespace(
        name="box",
        cls=Echo,
        options={"api_token": "s3cret", "image": "debian"},
        declared=SimpleNamespace(as_json=dict),
    )
    assert describe(target)["options"] == {"api_token": "(hidden)", "image": "debian"}  # type: ignore[arg-type]  # what of a target it reads
