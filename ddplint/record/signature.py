"""Are tensors the same on every rank? Compared by a blocked dot product with fixed weights.

A plain sum would not do: the sum of a softmax layer's gradient is always 0. The signatures travel to the parent over
the pipes, so that comparing never enters a collective that could pair with a stuck one of the user's.
"""

import functools
from collections.abc import Iterable

import torch

BLOCK = 65_536


SAMPLES, LENGTH = 64, 64
"""Where not all is looked at: so many runs of neighbours, evenly spread. (Single elements would cost a cache miss each.)"""


@functools.cache
def _weights(device: torch.device, count: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(20_240_229)
    return (torch.rand(BLOCK, generator=generator) + 0.5).to(device)[:count]


@functools.cache
def _order(device: torch.device, count: int) -> torch.Tensor:
    """What tells the blocks of a large tensor apart."""
    return 1 + torch.arange(1, count + 1, dtype=torch.float64, device=device) / count


@torch.no_grad()
def signatures(tensors: Iterable[tuple[str, torch.Tensor]], whole: bool = True) -> dict[str, float]:
    """Name -> a number that is the same on every rank where the tensor is; all moved to the host at once.

    ``whole`` False: of a large tensor only a sample, which costs a step next to nothing. What it misses is found where
    all is compared, at the last step.
    """
    named = [(name, _signature(tensor, whole)) for name, tensor in tensors]
    values = torch.stack([value for _, value in named]).tolist() if named else []
    return {name: value for (name, _), value in zip(named, values, strict=True)}


def _signature(tensor: torch.Tensor, whole: bool) -> torch.Tensor:
    if tensor.is_sparse:
        tensor = tensor.coalesce().to_dense()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    flat, count = tensor if tensor.dim() == 1 else tensor.reshape(-1), tensor.numel()
    if not whole and count > BLOCK:
        flat = flat.as_strided((SAMPLES, LENGTH), (count // SAMPLES, 1), flat.storage_offset()).reshape(-1)
        count = SAMPLES * LENGTH
    if flat.dtype is not torch.float32:
        flat = flat.to(torch.float32)
    if count <= BLOCK:
        return torch.dot(flat, _weights(flat.device, count))
    blocks, rest = count // BLOCK, count % BLOCK
    sums = (flat[: blocks * BLOCK].view(-1, BLOCK) @ _weights(flat.device, BLOCK)).double()
    found = torch.dot(sums, _order(flat.device, blocks)) + torch.dot(flat[count - rest:], _weights(flat.device, rest)).double()
    return found.float()
