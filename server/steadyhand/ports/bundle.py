"""All ports of a process in one value; the editor comes with the connection."""

from __future__ import annotations

from typing import NamedTuple

from steadyhand.ports.disk import Disk
from steadyhand.ports.encodings import DetectEncodings, no_detection
from steadyhand.ports.model import Models
from steadyhand.ports.processes import Processes
from steadyhand.ports.system import Clock, Ids, TextFilter


class Ports(NamedTuple):
    """What a session stands on; the editor comes with the connection."""

    disk: Disk
    processes: Processes
    clock: Clock
    ids: Ids
    models: Models
    text_filter: TextFilter | None = None
    detect: DetectEncodings = no_detection
