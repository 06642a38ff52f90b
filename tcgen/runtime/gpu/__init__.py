"""GPU programs: ``backend`` on a ``cupy_device``."""
