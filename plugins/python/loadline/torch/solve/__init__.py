"""From a problem to one verified plan: options, search effort, one plan for all ranks.

Imports: compat, problem.
"""
