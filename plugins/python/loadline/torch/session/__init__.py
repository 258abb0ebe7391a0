"""The ways in: backend, prepare, compile_in_place, report, and the object that holds
what they make for one model.

Imports: every other room.
"""
