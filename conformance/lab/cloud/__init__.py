"""A cloud of the lab's own that speaks the provider's protocol, for subjects that need one.

A control plane and an edge (`control_plane`, `edge`) in one process, and instances that are
really isolated processes (`instance`, `nursery`, `building`, `wires`), each with the provider's server inside it
(`executor`). Faults are injected, and the inventory asked for, through `client`.
"""
