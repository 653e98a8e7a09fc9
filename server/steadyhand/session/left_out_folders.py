"""The client's folders that do not count in a session, as the user was told last (row S11)."""

from __future__ import annotations

from steadyhand_values import define


@define
class LeftOutFolders:
    """URIs, in the client's order. They are not recorded: another process tells them again."""

    uris: tuple[str, ...] = ()

    def note(self, uris: tuple[str, ...]) -> bool:
        """Note these and return whether they are others than before."""
        before, self.uris = self.uris, uris
        return uris != before
