"""A coding agent for editors whose every effect on your files is accounted for.

The editor starts `python -m steadyhand` and speaks the Language Server Protocol over stdio. Imports point one
way: `__main__` > `lsp | adapters | cli` > `config | session` > `tools | journal` > `ports` > `domain`.
tests/architecture checks it.
"""

__version__ = "0.1.0"
