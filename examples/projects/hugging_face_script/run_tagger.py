"""The job: torchrun --nproc-per-node 8 run_tagger.py args.json"""

import sys

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import BertConfig, BertModel, HfArgumentParser, Trainer, TrainingArguments


class Tagger(nn.Module):
    """A tag for each token."""

    def __init__(self, bert: BertModel, tags: int):
        super().__init__()
        self.bert, self.tags = bert, nn.Linear(bert.config.hidden_size, tags)

    def forward(self, input_ids, attention_mask=None, labels=None):
        scores = self.tags(self.bert(input_ids, attention_mask=attention_mask).last_hidden_state)
        loss = None if labels is None else nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())
        return {"loss": loss, "logits": scores}


def build_model(tags: int = 5, pooler: bool = True) -> Tagger:
    """In a real project, BertModel.from_pretrained(...), whose pooler comes along unasked."""
    config = BertConfig(vocab_size=1000, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, intermediate_size=128)
    return Tagger(BertModel(config, add_pooling_layer=pooler), tags)


class Sentences(Dataset):
    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = torch.randint(0, 1000, (24,))
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens % 5}


def main() -> None:
    arguments, = HfArgumentParser(TrainingArguments).parse_json_file(sys.argv[1])
    Trainer(build_model(), arguments, train_dataset=Sentences()).train()


if __name__ == "__main__":
    main()
