"""Several GPUs of one process: a stream for each, and copies from one to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...errors import ArgumentError, UnavailableError
from .cupy_device import CupyDevice, open_device


@dataclass(frozen=True, slots=True)
class NumberedGpu:
    """One of several GPUs, and the stream on which this process queues its work there."""

    number: int
    device: CupyDevice
    stream: Any

    @property
    def name(self) -> str:
        """``GPU 1``, as in messages."""
        return f"GPU {self.number}"

    @contextmanager
    def current(self) -> Iterator[None]:
        """A context in which arrays are made on this GPU, and work is queued on its stream."""
        with self.device.library.cuda.Device(self.number), self.stream:
            yield

    def free_bytes(self) -> int:
        """Bytes of memory that nothing uses."""
        with self.current():
            return self.device.free_bytes()

    def copied(self, array: Any, other: NumberedGpu) -> Any:
        """A copy here of an array in C order of another GPU; the work there is waited for.

        The memory of the array may be used again by work that is queued there afterwards.
        """
        cuda = self.device.library.cuda
        with other.current():
            ready = cuda.Event(disable_timing=True)
            ready.record(other.stream)
        with self.current():
            made = self.device.empty(array.shape, array.dtype)
            self.stream.wait_event(ready)
            if array.nbytes:
                made.data.copy_from_device_async(array.data, array.nbytes, self.stream)
            done = cuda.Event(disable_timing=True)
            done.record(self.stream)
        with other.current():
            other.stream.wait_event(done)
        return made


def open_gpus(numbers: Sequence[int]) -> tuple[NumberedGpu, ...]:
    """GPUs by CuPy's numbers, which start at 0.

    Raises:
        ArgumentError: no number is given, or one twice.
        UnavailableError: CuPy, a driver or NVRTC is missing, or there is no GPU of a number.
    """
    if not numbers or len(set(numbers)) < len(numbers):
        raise ArgumentError(
            f"devices are {list(numbers)}: give the number of each GPU once, for example [0, 1]"
        )
    device = open_device()
    cuda = device.library.cuda
    count = int(cuda.runtime.getDeviceCount())
    for number in numbers:
        if not 0 <= number < count:
            here = "GPU 0 alone" if count == 1 else f"GPUs 0 to {count - 1}"
            raise UnavailableError(
                f"there is no GPU {number}: CuPy finds {here}, of those in CUDA_VISIBLE_DEVICES"
            )
    made = []
    for number in numbers:
        with cuda.Device(number):
            made.append(NumberedGpu(number, device, cuda.Stream(non_blocking=True)))
    return tuple(made)
