"""The system's clocks."""

from __future__ import annotations

import datetime
import time


class SystemClock:
    """`ports.Clock`. `now` follows the wall clock and may go back; `monotonic_s` never goes back."""

    def now(self) -> str:
        moment = datetime.datetime.now(datetime.timezone.utc)
        return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"

    def monotonic_s(self) -> float:
        return time.monotonic()
