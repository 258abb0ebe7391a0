"""What runs where this PyTorch cannot do all that a plan says.

Imports: compat, problem, solve, rewrite.
"""
