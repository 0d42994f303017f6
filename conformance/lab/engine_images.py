"""Images for the lab's engine, from archives such as `docker save` writes: no registry is there."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING

from conformance.lab.errors import LabError

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.lab.engine_api import EngineApi


def load_images(api: EngineApi, folder: Path) -> None:
    """Load what the engine does not have yet.

    Raises:
        LabError: an archive cannot be read, or the engine refused it.
    """
    for archive in sorted(folder.glob("*.tar")):
        if not _has_all(api, archive):
            with archive.open("rb") as file:
                api.load(file)


def _has_all(api: EngineApi, archive: Path) -> bool:
    try:
        with tarfile.open(archive) as tar:
            manifest = tar.extractfile("manifest.json")
            images = json.load(manifest) if manifest else []
    except (OSError, KeyError, ValueError, tarfile.TarError) as cause:
        raise LabError(
            f"the images' folder has {archive.name}, which is no archive of an image ({cause}); "
            "write it with docker save, or take it away"
        ) from cause
    return all(_has(api, image) for image in images)


def _has(api: EngineApi, image: dict[str, list[str] | str]) -> bool:
    # The name of the configuration is its digest, which is what identifies an image.
    digest = str(image["Config"]).rpartition("/")[2].removesuffix(".json")
    identity = f"sha256:{digest}"
    return all(api.image_id(name) == identity for name in image["RepoTags"] or (identity,))
