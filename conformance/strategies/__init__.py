"""What is generated.

Strategies draw plain data. What needs a site of the laboratory is drawn as a recipe
(a `LookAlike`, a `Split`) that the check applies to the names of fresh sites.
"""
