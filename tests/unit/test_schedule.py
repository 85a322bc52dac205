import math

import pytest

from transformer_cli.training.schedule import Schedule


@pytest.mark.parametrize("warmup", [1, 4, 400])
def test_inverse_sqrt_is_the_papers_formula_scaled_to_its_peak(warmup):
    # Vaswani et al. 2017, eq. 3, with any d_model: the ratio to the peak is what train.lr scales.
    def paper(t):
        return 512**-0.5 * min(t**-0.5, t * warmup**-1.5)

    schedule = Schedule("inverse_sqrt", 0.002, warmup)
    for t in (1, 2, 3, 4, 5, 399, 400, 401, 100_000):
        assert schedule.learning_rate(t, None) == pytest.approx(0.002 * paper(t) / paper(warmup))


def test_inverse_sqrt_does_not_depend_on_the_end():
    schedule = Schedule("inverse_sqrt", 1.0, 10)
    assert [schedule.learning_rate(t, 20) for t in range(1, 21)] == [
        schedule.learning_rate(t, 999) for t in range(1, 21)
    ]


@pytest.mark.parametrize("kind", ["linear", "cosine", "trapezoidal"])
def test_decay_starts_at_the_peak_and_ends_just_above_zero(kind):
    schedule, total = Schedule(kind, 2.0, 10), 100
    rates = [schedule.learning_rate(t, total) for t in range(1, total + 1)]
    assert rates[:10] == pytest.approx([0.2 * t for t in range(1, 11)])
    assert rates[9:] == sorted(rates[9:], reverse=True)
    assert 0 < rates[-1] < 0.1
    assert schedule.learning_rate(total + 1, total) == pytest.approx(0.0, abs=1e-12)


def test_linear_and_cosine_follow_their_formulas():
    for t in range(11, 101):
        left = (101 - t) / 91
        assert Schedule("linear", 1.0, 10).learning_rate(t, 100) == pytest.approx(left)
        expected = 0.5 * (1 + math.cos(math.pi * (1 - left)))
        assert Schedule("cosine", 1.0, 10).learning_rate(t, 100) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["inverse_sqrt", "linear", "cosine", "trapezoidal"])
def test_no_warmup_starts_at_the_peak(kind):
    assert Schedule(kind, 0.5, 0).learning_rate(1, 1000) == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize("kind", ["inverse_sqrt", "linear", "cosine", "trapezoidal"])
def test_while_minutes_are_timed_the_unknown_end_does_not_matter(kind):
    schedule = Schedule(kind, 1.0, 4, hold_until=23)
    for t in range(1, 24):
        assert schedule.learning_rate(t, None) == schedule.learning_rate(t, 500)


def test_a_trapezoid_rises_stays_and_falls():
    schedule = Schedule("trapezoidal", 2.0, 10, decay_share=0.2)
    rates = [schedule.learning_rate(t, 100) for t in range(1, 101)]
    assert rates[:10] == pytest.approx([0.2 * t for t in range(1, 11)])
    assert rates[10:80] == [2.0] * 70
    assert rates[80:] == pytest.approx([2.0 * (101 - t) / 21 for t in range(81, 101)])


def test_a_trapezoid_that_only_decays_is_the_linear_schedule():
    linear, whole = Schedule("linear", 1.0, 10), Schedule("trapezoidal", 1.0, 10, decay_share=1.0)
    assert [whole.learning_rate(t, 50) for t in range(1, 51)] == [linear.learning_rate(t, 50) for t in range(1, 51)]


@pytest.mark.parametrize(("warmup", "hold", "expected"), [(90, 0, 90), (10, 95, 95), (10, 23, 80)])
def test_a_trapezoid_decays_neither_in_its_warmup_nor_while_minutes_are_timed(warmup, hold, expected):
    schedule = Schedule("trapezoidal", 1.0, warmup, hold, 0.2)
    assert max(t for t in range(1, 101) if schedule.learning_rate(t, 100) == 1.0) == expected


def test_before_its_decay_a_trapezoid_does_not_depend_on_the_end():
    schedule = Schedule("trapezoidal", 1.0, 5, 0, 0.5)
    for t in range(1, 51):
        assert schedule.learning_rate(t, 100) == schedule.learning_rate(t, 999) == schedule.learning_rate(t, None)
    assert schedule.learning_rate(51, 100) < schedule.learning_rate(51, 999)


def test_a_run_of_one_step_still_steps():
    assert Schedule("trapezoidal", 1.0, 0).learning_rate(1, 1) == 1.0
