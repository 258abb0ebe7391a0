"""Optimizer state: how many bytes it will take, and its moves between device and host.

Imports: compat, rewrite.
"""
