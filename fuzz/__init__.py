"""Fuzzing: every reader of files and requests, and public calls, on input that nobody would write.

``make fuzz SECONDS=…`` runs all targets in turn. What a target may raise is listed with it; any
other error, a crash, a hang or too much memory is a finding, and its input is kept.
"""
