"""The shipped server with a model that calls the tools that a prompt names, for tools the practice model has no word
for.

Run as `python tests/support/calling_server.py [flags of steadyhand]`. tests/support/model.py says what a prompt may
contain.
"""

from __future__ import annotations

import sys

from steadyhand.__main__ import end_process, read_flags, run, system_ports
from steadyhand.lsp.rpc.stdio import claim_stdio
from tests.support.model import calling_models


def main() -> int:
    stdio = claim_stdio()
    flags = read_flags(sys.argv[1:])
    assert flags is not None, sys.argv
    return run(stdio, system_ports()._replace(models=calling_models), flags)


if __name__ == "__main__":
    end_process(main())
