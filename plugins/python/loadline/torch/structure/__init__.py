"""The structure of a step: its head in segments of rows, its batch in parts.

Both give the same step in fewer bytes (docs/structure.md).

Imports: compat, problem, rewrite.
"""
