"""Parts that profiles and faces share: file places and seconds."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from signet_conformance.files.documents import Maybe, Part, Text

Seconds = Annotated[float, Field(gt=0, description="a number of seconds above 0")]


class FilePlace(Part):
    """A place where a file may be."""

    path: Annotated[Text, Field(description="a path below the package, or below any folder upwards")]
    package: Annotated[Maybe[Text], Field(description="the name in a package.json")] = None
