"""Change files. Promises: a file has its old or its new content, never a mixture; a concurrent save is not lost (row
W9).

Does not know: which tool asked, or why. Exports: `planned_write`, `replace_file`, `move`, `remove`, `create_link`,
`restore`, `kept_attributes`, `blob_store`, `postcondition_check`.
"""
