"""From a user's request to a compiled program.

``api`` reads the arguments of :func:`tcgen.compile`; ``driver`` lists the stages;
``memory_limit`` retries until a program fits, ``plan_cache`` stores plans on disk in the text of
``serialize``, ``autotune`` measures product variants by ``timings``.
"""
