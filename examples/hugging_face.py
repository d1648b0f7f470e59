"""Models of the transformers library, small, from a config: nothing is downloaded."""

from torch import nn


def bert(hidden_size: int = 64, layers: int = 2, heads: int = 2, vocabulary: int = 1000) -> nn.Module:
    """A BertModel as the library builds it, pooler included."""
    from transformers import BertConfig, BertModel
    return BertModel(BertConfig(
        vocab_size=vocabulary, hidden_size=hidden_size, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=4 * hidden_size, max_position_embeddings=64,
    ))


def with_gradient_checkpointing(model: nn.Module, use_reentrant: bool = False) -> nn.Module:
    """The model with its own gradient checkpointing switched on, as ``TrainingArguments.gradient_checkpointing`` does."""
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": use_reentrant})
    return model
