"""Beam search, knowing nothing of the model: it sees tokens and log-probabilities.

Legend: B sentences still searched, K live hypotheses of each, R = B x K rows, V vocabulary, T tokens so far.

A hypothesis ends with ``</s>``; its score is log P(y|x) / lp(y), with the length penalty of GNMT (``pool.py``). Each
step keeps the K best continuations; a hypothesis may end where its ``</s>`` is at least as probable as the K-th of
them. A sentence is searched until no live hypothesis can win: the score of one is at most log P(so far) / lp(longest
allowed). So a beam as wide as all live prefixes is exhaustive search. With a beam of one there is nothing to compare,
and the first ``</s>`` ends the search: greedy search. At the longest length allowed only ``</s>`` may follow, even if
``min_length`` forbids it.

How equals are ordered is in ``ranking.py``; batches and the model's side are in ``batch_decoder.py``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from transformer_cli.data.tokenizer import BOS, EOS, PAD, UNK
from transformer_cli.decoding.pool import Finished, Pool, length_penalty
from transformer_cli.decoding.ranking import DEAD, STEPS_PER_NAT, best, best_tokens, to_grid
from transformer_cli.decoding.settings import DecodeSettings

#: From the newest token of each row ``[R]`` to the log-probabilities ``[R, V]`` of the next, which may be overwritten.
Step = Callable[[Tensor], Tensor]
#: Takes the present rows ``[R']`` that live on, in their new order; rows may be dropped and repeated.
Reorder = Callable[[Tensor], None]

_LEAVE_TOGETHER = 8  # greedy: finished sentences leave when an 8th has finished; copying the cache costs a step's time


@dataclass(frozen=True)
class Beam:
    """The live hypotheses of all sentences that are still searched."""

    sentences: Tensor  # [B] number of each sentence in the batch
    caps: Tensor  # [B] longest hypothesis allowed, with </s>
    penalties: Tensor  # [B] length penalty of that longest hypothesis: no other is divided by more
    to_beat: Tensor  # [B] score that a live hypothesis must exceed to change the result
    tokens: Tensor  # [B, K, 1 + T] starts with <s>
    totals: Tensor  # [B, K] log-probabilities in steps of the grid, best first; a place without hypothesis is DEAD

    def take(self, kept: Tensor) -> "Beam":
        """Return the beam of these sentences only, given by number or by a boolean each."""
        return Beam(*(getattr(self, field.name)[kept] for field in fields(self)))


def beam_search(
    step: Step,
    reorder: Reorder,
    max_lengths: Sequence[int],
    settings: DecodeSettings,
    device: torch.device | str = "cpu",
) -> list[list[Finished]]:
    """Search the best continuations of a batch of sentences.

    Args:
        step: log-probabilities of the next token; at the first call there is one row per sentence.
        reorder: called between steps when rows changed their places or number.
        max_lengths: longest hypothesis of each sentence, with ``</s>``.
        settings: beam size, length penalty, limits; ``n_best`` says how many hypotheses must be certain.
        device: where tokens live.

    Returns:
        Per sentence the finished hypotheses, best first, all different: at least ``n_best`` if the beam found so many,
        at most twice ``beam_size``; none if no token was ever possible (all log-probabilities -inf or NaN).
    """
    pools = [Pool(settings) for _ in max_lengths]
    beam = _start(max_lengths, settings.length_penalty, device)
    while len(beam.sentences):
        log_probs = step(beam.tokens[..., -1].flatten())
        beam, rows = _advance(beam, log_probs, pools, settings)
        if len(rows) and not _in_place(rows, len(log_probs)):
            reorder(rows)
    return [pool.best for pool in pools]


def _start(max_lengths: Sequence[int], alpha: float, device: torch.device | str) -> Beam:
    n = len(max_lengths)
    penalties = [length_penalty(length, alpha) for length in max_lengths]
    return Beam(
        sentences=torch.arange(n, device=device),
        caps=torch.tensor(max_lengths, dtype=torch.long, device=device),
        penalties=torch.tensor(penalties, dtype=torch.float64, device=device),
        to_beat=torch.full((n,), float("-inf"), dtype=torch.float64, device=device),
        tokens=torch.full((n, 1, 1), BOS, device=device),
        totals=torch.zeros(n, 1, dtype=torch.long, device=device),
    )


def _advance(beam: Beam, log_probs: Tensor, pools: list[Pool], settings: DecodeSettings) -> tuple[Beam, Tensor]:
    """End and grow the hypotheses by one token; return the next beam and the rows ``[R']`` that it grew from."""
    at_cap = beam.caps == beam.tokens.size(-1)  # [B]: <s> stands for the </s> to come
    endings = beam.totals + to_grid(log_probs[:, EOS]).view_as(beam.totals)  # [B, K]
    candidates, ids = _continuations(beam, log_probs, settings)  # [B, K, n] each
    capped = at_cap[:, None] & (candidates[..., 0] > endings)
    candidates = candidates.masked_fill(at_cap[:, None, None], DEAD).flatten(1)

    totals, places = best(candidates, min(settings.beam_size, candidates.size(1)))  # [B, K']
    worst = totals[:, -1:] if totals.size(1) == settings.beam_size else DEAD
    ended = _may_end(beam, endings, at_cap, settings) & (endings >= worst)
    beam = _collect(beam, endings, ended, capped, pools, settings)

    parents = places // ids.size(-1)  # [B, K']
    rows = torch.arange(len(parents), device=parents.device)[:, None] * beam.tokens.size(1) + parents
    newest = ids.flatten(1).gather(1, places)[..., None]  # [B, K', 1]
    tokens = torch.cat([beam.tokens.flatten(0, 1)[rows], newest], dim=-1)
    grown = replace(beam, tokens=tokens, totals=totals.masked_fill(~_alive(totals), DEAD))
    over = _cannot_win(grown)
    if settings.beam_size == 1:
        over |= ended[:, 0]
    return _leave(grown, rows, over)


def _continuations(beam: Beam, log_probs: Tensor, settings: DecodeSettings) -> tuple[Tensor, Tensor]:
    """Return the totals and ids ``[B, K, n]`` of the best tokens but ``</s>`` after each hypothesis, best first."""
    log_probs[:, [PAD, UNK, BOS, EOS]] = -torch.inf
    if settings.no_repeat_ngram:
        _forbid_repeats(log_probs, beam.tokens[..., 1:].flatten(0, 1), settings.no_repeat_ngram)
    values, ids = best_tokens(log_probs, settings.beam_size)  # [R, n]
    shape = (*beam.totals.shape, -1)
    return beam.totals[..., None] + values.view(shape), ids.view(shape)


def _forbid_repeats(log_probs: Tensor, tokens: Tensor, n: int) -> None:
    """Forbid every token that would end an n-gram which ``tokens [R, T]`` contain already."""
    if tokens.size(1) < n:
        return
    seen = tokens.unfold(1, n, 1)  # [R, T - n + 1, n]
    last = tokens[:, None, tokens.size(1) - n + 1 :]  # [R, 1, n - 1]
    recurs = (seen[..., :-1] == last).all(-1)
    log_probs.scatter_(1, seen[..., -1].masked_fill(~recurs, PAD), -torch.inf)


def _may_end(beam: Beam, endings: Tensor, at_cap: Tensor, settings: DecodeSettings) -> Tensor:
    long_enough = beam.tokens.size(-1) - 1 >= settings.min_length
    return _alive(endings) & (at_cap[:, None] | long_enough)


def _collect(
    beam: Beam, endings: Tensor, ended: Tensor, capped: Tensor, pools: list[Pool], settings: DecodeSettings
) -> Beam:
    """Put the hypotheses that ended into their pools; return the beam with what is to beat now."""
    places, hypotheses = ended.nonzero(as_tuple=True)  # sentence by sentence, best parent first
    if not len(places):
        return beam
    penalty = length_penalty(beam.tokens.size(-1), settings.length_penalty)
    found = zip(
        places.tolist(),
        beam.sentences[places].tolist(),
        endings[ended].tolist(),
        beam.tokens[places, hypotheses, 1:].tolist(),
        capped[ended].tolist(),
        strict=True,
    )
    to_beat = beam.to_beat.tolist()
    for place, sentence, total, tokens, was_capped in found:
        pools[sentence].add(Finished(total / STEPS_PER_NAT / penalty, tokens, was_capped))
        to_beat[place] = pools[sentence].to_beat
    return replace(beam, to_beat=torch.tensor(to_beat, dtype=torch.float64, device=places.device))


def _cannot_win(beam: Beam) -> Tensor:
    """Return ``[B]``: no live hypothesis is left, or even with certain tokens to the longest length none would win."""
    best_total = beam.totals[:, 0]
    return ~_alive(best_total) | (best_total.double() / STEPS_PER_NAT / beam.penalties <= beam.to_beat)


def _leave(beam: Beam, rows: Tensor, over: Tensor) -> tuple[Beam, Tensor]:
    """Let finished sentences go, or keep them without hypotheses while they are few and going would cost a copy."""
    n_over = int(over.sum())
    if rows.size(1) == 1 and n_over * _LEAVE_TOGETHER < len(over):
        return replace(beam, totals=beam.totals.masked_fill(over[:, None], DEAD)), rows.flatten()
    return (beam.take(~over), rows[~over].flatten()) if n_over else (beam, rows.flatten())


def _alive(totals: Tensor) -> Tensor:
    return totals > DEAD // 2


def _in_place(rows: Tensor, n_before: int) -> bool:
    return len(rows) == n_before and bool((rows == torch.arange(n_before, device=rows.device)).all())
