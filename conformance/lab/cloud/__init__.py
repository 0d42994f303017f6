"""A cloud of the lab's own that speaks the provider's protocol, for subjects that need one.

A control plane and an edge (`control_plane`, `edge`) in one process, and instances that are
really isolated processes (`instance`, `wires`), each with the provider's server inside it
(`executor`); all of them are forked from one (`nursery`, `building`). Faults are injected, and
the inventory asked for, through `client`.
"""
