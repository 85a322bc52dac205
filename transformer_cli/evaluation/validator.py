"""The validation of a training: loss, perplexity, BLEU and samples of the dev set.

BLEU goes through the same translator and the same ``score`` as ``tfm eval``, so both give the same number for the same
checkpoint and beam.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from transformer_cli.config import Config
from transformer_cli.data.batching import TokenizedPairs
from transformer_cli.data.left_out import every_dev_pair_too_long
from transformer_cli.data.pairs import ParallelText
from transformer_cli.evaluation.details import repeated_share
from transformer_cli.evaluation.scores import score
from transformer_cli.model.transformer import Transformer
from transformer_cli.runtime import Runtime
from transformer_cli.training.loss import dev_loss
from transformer_cli.training.validation import Validation

_SAMPLES = 3


class Validator:
    """Measures a model on the dev set; called by the trainer."""

    def __init__(
        self,
        dev: ParallelText,
        pairs: TokenizedPairs,
        config: Config,
        translate: Callable[[Any, Sequence[str]], list[str]],
        runtime: Runtime,
    ) -> None:
        """Prepare the validation.

        Args:
            dev: all dev pairs, as text: for BLEU.
            pairs: the dev pairs that are not over-long, as tokens: for the loss.
            config: the target language and ``train.batch_tokens`` are used.
            translate: translates lines with a model, searching as the run is to be judged by.
            runtime: device and precision of the loss.

        Raises:
            DataError: every dev pair is over-long.
        """
        if not len(pairs.src):
            raise every_dev_pair_too_long(config.data)
        self._dev, self._pairs, self._config, self._translate, self._runtime = dev, pairs, config, translate, runtime

    def __call__(self, model: Transformer, step: int) -> Validation:
        """Validate a model; its weights, its mode and the random generators stay as they are."""
        was_training = model.training
        model.eval()
        try:
            loss = dev_loss(model, self._pairs, self._runtime, self._config.train.batch_tokens)
            hypotheses = self._translate(model, self._dev.src)
        finally:
            model.train(was_training)
        bleu = score(hypotheses, [self._dev.tgt], tgt_lang=self._config.data.tgt_lang)[0]
        return Validation(
            loss=loss,
            perplexity=math.exp(min(loss, 700.0)),  # more has no float
            bleu=bleu.value,
            signature=bleu.signature,
            samples=self._samples(hypotheses),
            repeated_share=repeated_share(hypotheses),
        )

    def _samples(self, hypotheses: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return source, reference and hypothesis of the same lines at every validation, spread over the set."""
        count = min(_SAMPLES, len(self._dev))
        chosen = [number * len(self._dev) // count for number in range(count)]
        return [(self._dev.src[i], self._dev.tgt[i], hypotheses[i]) for i in chosen]
