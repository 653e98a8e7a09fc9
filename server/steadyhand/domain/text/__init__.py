"""Text and bytes of files. Promises: bytes outside an edited range stay as they are.

Does not know: paths, files, tools.
Exports: `edit`, `lines`, `positions`, `diff`, `globs`, `fences`, `folding`.
"""
