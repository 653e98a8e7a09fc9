"""`make editor`: the real VS Code in your browser, with the extension and the practice model, until Ctrl+C."""

from __future__ import annotations

import subprocess
import sys

from tests.editors.install import CLIENT, OWN_ENVIRONMENT, code_server
from tests.support.tools import require_tool


def main() -> int:
    """The exit code of the editor's program."""
    folder, node = code_server()
    command = [
        require_tool("node"), str(CLIENT / "test" / "editor" / "demo.mjs"), "--code-server", str(folder),
        "--node", str(node), "--vsix", str(CLIENT / "steadyhand.vsix"),
    ]  # fmt: skip
    try:
        return subprocess.run(command, env=OWN_ENVIRONMENT, check=False).returncode
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
