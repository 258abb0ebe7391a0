"""A plan becomes a forward and a backward module, and the operators that they call.

Imports: compat, problem, solve.
"""
