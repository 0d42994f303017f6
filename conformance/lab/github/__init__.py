"""A GitHub of the lab's own: real repositories behind its names, and a record of who asked.

What a request means is read as generously as a server could read it (`routes`), so that a
sandbox that lets an odd spelling through is seen to reach what it should not.
"""
