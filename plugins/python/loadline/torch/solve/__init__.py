"""From a problem to one verified plan: options, one plan for all ranks.

Imports: compat, problem.
"""
