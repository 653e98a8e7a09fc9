"""The disk by folder handles, or by paths on a system that has none. Promises: links are never followed by accident.

Does not know: what the files mean. Exports: `posix.system_disk`.
"""
