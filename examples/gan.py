"""Two networks in one module, with an optimizer each: the loop is the user's own (``step:``)."""

import torch
from torch import nn
from torch.nn.functional import softplus


class Gan(nn.Module):
    """``forward`` judges real samples, made ones, or both: DDP must see every use of the two networks."""

    def __init__(self, noise: int = 8, features: int = 16, width: int = 32):
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(noise, width), nn.GELU(), nn.Linear(width, features))
        self.discriminator = nn.Sequential(nn.Linear(features, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, noise: torch.Tensor, real: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Scores of made samples and, where ``real`` ones are given, theirs; the generator then learns nothing."""
        if real is None:
            return self.discriminator(self.generator(noise)), None
        with torch.no_grad():
            made = self.generator(noise)
        return self.discriminator(made), self.discriminator(real)


def optimizers(model: Gan) -> dict[str, torch.optim.Optimizer]:
    return {"generator": torch.optim.Adam(model.generator.parameters(), lr=2e-4),
            "discriminator": torch.optim.Adam(model.discriminator.parameters(), lr=2e-4)}


def train_step(model: nn.Module, batch: dict[str, torch.Tensor], optimizer: dict[str, torch.optim.Optimizer]) -> None:
    """The discriminator first, then the generator; ``model`` is the DDP wrapper."""
    made, real = model(batch["noise"], batch["real"])
    optimizer["discriminator"].zero_grad()
    (softplus(made).mean() + softplus(-real).mean()).backward()
    optimizer["discriminator"].step()

    made, _ = model(batch["noise"])
    optimizer["generator"].zero_grad()
    softplus(-made).mean().backward()
    optimizer["generator"].step()
