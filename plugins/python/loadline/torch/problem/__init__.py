"""A traced training step as a loadline.problem/1 document: bytes, times, order.

Imports: compat.
"""
