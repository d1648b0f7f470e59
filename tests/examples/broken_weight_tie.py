"""The vocabulary is grown after head and embedding were tied, and the new embedding is not tied again."""

from types import SimpleNamespace

from torch import nn


class Language(nn.Module):
    def __init__(self, tie_again: bool = False):
        super().__init__()
        self.config = SimpleNamespace(tie_word_embeddings=True)
        self.embedding, self.head = nn.Embedding(8, 4), nn.Linear(4, 8, bias=False)
        self.tie()
        self.embedding = nn.Embedding(10, 4)
        if tie_again:
            self.head = nn.Linear(4, 10, bias=False)
            self.tie()

    def tie(self):
        self.head.weight = self.embedding.weight

    def get_input_embeddings(self):
        return self.embedding

    def get_output_embeddings(self):
        return self.head

    def forward(self, y):
        return self.head(self.embedding(y))
