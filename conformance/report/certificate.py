"""The certificate: a run's verdicts as JSON that other programs read."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import conformance
from conformance.report.assembly import assemble, headline

if TYPE_CHECKING:
    from conformance.report.assembly import RequirementResult, SubjectReport
    from conformance.run.plan import Plan
    from conformance.run.progress import Records

SCHEMA_VERSION = "1"


def certificate(plan: Plan, records: Records) -> dict[str, Any] | list[dict[str, Any]]:
    """Give the certificate of a run: an object, or a list of them for several subjects."""
    found = [_certificate(report, plan, records) for report in assemble(plan, records)]
    return found[0] if len(found) == 1 else found


def to_text(content: dict[str, Any] | list[dict[str, Any]]) -> str:
    """The certificate as text, once it was found to keep its schema.

    Raises:
        jsonschema.ValidationError: It does not.
    """
    import jsonschema

    jsonschema.validate(content, schema())
    return json.dumps(content, indent=2) + "\n"


def schema() -> dict[str, Any]:
    """The JSON schema of certificates."""
    text = Path(__file__).with_name("schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def digest() -> str:
    """The SHA-256 of the suite as packaged: ledger, checks, lab, and the way to a verdict."""
    root = Path(conformance.__file__).parent
    total = hashlib.sha256()
    # Not rglob: it breaks where a folder of cached bytecode vanishes under it.
    folders = os.walk(root)
    files = [Path(folder, name) for folder, _, names in folders for name in names]
    for path in sorted(path for path in files if path.suffix == ".py"):
        content = path.read_bytes()
        total.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()


def _certificate(report: SubjectReport, plan: Plan, records: Records) -> dict[str, Any]:
    subject = report.subject
    keys = ("name", "class", "version", "options", "declared")
    return {
        "schema_version": SCHEMA_VERSION,
        "subject": {key: subject[key] for key in keys},
        "suite": {"version": conformance.__version__, "digest": digest()},
        "environment": {
            "python": platform.python_version(),
            "platform": platform.platform(),
            "pytest": version("pytest"),
            "hypothesis": version("hypothesis"),
            "user": "root" if os.geteuid() == 0 else "ordinary user",
        },
        "lab": records.lab,
        "profile": plan.profile,
        "seed": plan.seed,
        "scope": [result.requirement.id for result in report.judged],
        "outcome": report.outcome.value,
        "headline": headline(report, plan, records.lab),
        "requirements": [_requirement(result) for result in report.results],
    }


def _requirement(result: RequirementResult) -> dict[str, Any]:
    checks = result.checks
    return {
        "id": result.requirement.id,
        "level": result.level,
        "source": " ".join(result.requirement.sources),
        "verdict": result.verdict.value,
        "checks": [check.nodeid for check in checks],
        "examples": sum(check.examples for check in checks),
        "live_examples": sum(check.live_examples for check in checks),
        "seconds": round(sum(check.seconds for check in checks), 3),
        "message": result.message,
        "example": result.lead.example,
        "witness": result.lead.saw,
        "reproduce": result.reproduce,
    }
