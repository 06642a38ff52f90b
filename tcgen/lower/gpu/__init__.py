"""Binding of loops for a GPU.

``bind`` calls ``launch_order``, ``fuse_launches`` (by ``rename`` and ``liveness``),
``thread_mapping`` and ``tiles``.
"""
