"""Read the workspace. Promises: paths are resolved component by component, links included (row E3).

Does not know: how files are changed. Exports: `paths`, `walk`, `open_documents`, `attached_file`, `modified_since`,
`search_prefilter`.
"""
