"""What Loadline needs of PyTorch itself: names that are not public, devices, operators.

No other room uses a private name of PyTorch. This room imports no other.
"""
