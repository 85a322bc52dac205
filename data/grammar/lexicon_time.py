"""When and how often: time adverbs by tense, clock times, weekdays, months, frequencies."""

from __future__ import annotations

from .chinese import numeral
from .lexicon import Adverb, adverbs, rows

WEEKDAYS = list(rows("""
Monday, Montag, 周一
Tuesday, Dienstag, 周二
Wednesday, Mittwoch, 周三
Thursday, Donnerstag, 周四
Friday, Freitag, 周五
Saturday, Samstag, 周六
Sunday, Sonntag, 周日
"""))  # fmt: skip
MONTHS = [
    (en, de, numeral(index) + "月")
    for index, (en, de) in enumerate(
        zip(
            [
                "January",
                "February",
                "March",
                "April",
                "May",
                "June",
                "July",
                "August",
                "September",
                "October",
                "November",
                "December",
            ],
            [
                "Januar",
                "Februar",
                "März",
                "April",
                "Mai",
                "Juni",
                "Juli",
                "August",
                "September",
                "Oktober",
                "November",
                "Dezember",
            ],
            strict=True,
        ),
        start=1,
    )
]
NUMBERS = list(rows("""
one, eins
two, zwei
three, drei
four, vier
five, fünf
six, sechs
seven, sieben
eight, acht
nine, neun
ten, zehn
eleven, elf
twelve, zwölf
"""))  # fmt: skip


def number_words(value: int) -> tuple[str, str]:
    """Return English and German words for 1 … 12."""
    en, de = NUMBERS[value - 1]
    return en, de


def _clock() -> list[Adverb]:
    """Return whole, half and quarter hours from one to half past eleven."""
    times = []
    for hour in range(1, 12):
        en, de = number_words(hour)
        next_de = number_words(hour + 1)[1]
        zh = "两" if hour == 2 else numeral(hour)
        o_clock = "ein" if hour == 1 else de
        times.append(Adverb(f"at {en} o'clock", f"um {o_clock} Uhr", f"{zh}点"))
        times.append(Adverb(f"at half past {en}", f"um halb {next_de}", f"{zh}点半"))
        times.append(Adverb(f"at a quarter past {en}", f"um Viertel nach {de}", f"{zh}点一刻"))
    return times


CLOCK = _clock()


def clock_between(first: int, last: int) -> list[Adverb]:
    """Return the clock times of the hours `first` … `last` (of 24) without noon."""
    hours = {(hour - 1) % 12 for hour in range(first, last + 1) if hour % 12}
    return [time for index, time in enumerate(CLOCK) if index // 3 in hours]


PAST = adverbs("""
yesterday, gestern, 昨天
last week, letzte Woche, 上周
last month, letzten Monat, 上个月
last year, letztes Jahr, 去年
last weekend, letztes Wochenende, 上周末
this morning, heute Morgen, 今早
yesterday evening, gestern Abend, 昨晚
yesterday afternoon, gestern Nachmittag, 昨天下午
the day before yesterday, vorgestern, 前天
two days ago, vor zwei Tagen, 两天前
three weeks ago, vor drei Wochen, 三周前
an hour ago, vor einer Stunde, 一小时前
a few days ago, vor ein paar Tagen, 几天前
""") + [Adverb(f"last {en}", f"letzten {de}", f"上{zh}") for en, de, zh in WEEKDAYS]  # fmt: skip
# What takes days or happens seldom is told with these.
PAST_FAR = [*(time for time in PAST if time.en in ("last week", "last month", "last year", "three weeks ago")), *adverbs("""
two years ago, vor zwei Jahren, 两年前
last summer, letzten Sommer, 去年夏天
last winter, letzten Winter, 去年冬天
two months ago, vor zwei Monaten, 两个月前
"""), *(Adverb(f"last {en}", f"letzten {de}", f"去年{zh}") for en, de, zh in MONTHS)]  # fmt: skip
PAST_NEAR = [time for time in PAST if time.en not in ("last month", "last year", "three weeks ago")]
FUTURE = adverbs("""
tomorrow, morgen, 明天
tomorrow morning, morgen früh, 明早
tomorrow evening, morgen Abend, 明晚
next week, nächste Woche, 下周
next month, nächsten Monat, 下个月
next year, nächstes Jahr, 明年
next weekend, nächstes Wochenende, 下周末
tonight, heute Abend, 今晚
this afternoon, heute Nachmittag, 今天下午
the day after tomorrow, übermorgen, 后天
in two days, in zwei Tagen, 两天后
in three weeks, in drei Wochen, 三周后
in an hour, in einer Stunde, 一小时后
""") + [Adverb(f"next {en}", f"nächsten {de}", f"下{zh}") for en, de, zh in WEEKDAYS]  # fmt: skip
FUTURE_FAR = [*(time for time in FUTURE if time.en in ("next week", "next month", "next year", "in three weeks")), *adverbs("""
next summer, nächsten Sommer, 明年夏天
next winter, nächsten Winter, 明年冬天
in two months, in zwei Monaten, 两个月后
in two years, in zwei Jahren, 两年后
"""), *(Adverb(f"next {en}", f"nächsten {de}", f"明年{zh}") for en, de, zh in MONTHS)]  # fmt: skip
FUTURE_NEAR = [time for time in FUTURE if time.en not in ("next month", "next year", "in three weeks")]
HABIT = adverbs("""
every day, jeden Tag, 每天
every morning, jeden Morgen, 每天早上
every evening, jeden Abend, 每天晚上
every afternoon, jeden Nachmittag, 每天下午
every weekend, jedes Wochenende, 每周末
every week, jede Woche, 每周
in the morning, am Morgen, 早上
in the evening, am Abend, 晚上
on weekends, am Wochenende, 周末
""") + [Adverb(f"every {en}", f"jeden {de}", f"每{zh}") for en, de, zh in WEEKDAYS]  # fmt: skip
DAYS = adverbs("""
today, heute, 今天
""") + [Adverb(f"on {en}", f"am {de}", zh) for en, de, zh in WEEKDAYS]  # fmt: skip
FREQUENCY = adverbs("""
often, oft, 经常
always, immer, 总是
usually, meistens, 通常
sometimes, manchmal, 有时
rarely, selten, 很少
""")  # fmt: skip
SEASONS = adverbs("""
in spring, im Frühling, 春天
in summer, im Sommer, 夏天
in fall, im Herbst, 秋天
in winter, im Winter, 冬天
""") + [Adverb(f"in {en}", f"im {de}", zh) for en, de, zh in MONTHS]  # fmt: skip
DURATION = [
    Adverb(f"for {en} {unit}", f"{de} {de_unit} lang", zh_number + zh_unit)
    for number in range(2, 7)
    for en, de in [number_words(number)]
    for zh_number in ["两" if number == 2 else numeral(number)]
    for unit, de_unit, zh_unit in (("hours", "Stunden", "个小时"), ("days", "Tage", "天"))
]
SINCE = [
    Adverb(f"for {en} {unit}", f"seit {de} {de_unit}", zh_number + zh_unit)
    for number in range(2, 11)
    for en, de in [number_words(number)]
    for zh_number in ["两" if number == 2 else numeral(number)]
    for unit, de_unit, zh_unit in (("months", "Monaten", "个月"), ("years", "Jahren", "年"))
]
MANNER = adverbs("""
carefully, vorsichtig, 小心地
slowly, langsam, 慢慢地
quickly, schnell, 很快地
together, zusammen, 一起
alone, allein, 一个人
quietly, leise, 悄悄地
patiently, geduldig, 耐心地
""")  # fmt: skip
PART_OF_WEEK = [time for time in HABIT if time.en.startswith(("in", "on"))]
EVERY_DAY = [
    time for time in HABIT if time.en == "every day" or (time.en.startswith("every") and time.en.endswith("day"))
]
SOON = [time for time in FUTURE_NEAR if time.en.startswith(("tomorrow", "tonight", "this", "the day", "next Mon", "next Fri", "next Sat", "next weekend"))] + adverbs("""
today, heute, 今天
now, jetzt, 现在
""")  # fmt: skip
TODAY = adverbs("""
today, heute, 今天
this evening, heute Abend, 今晚
this afternoon, heute Nachmittag, 今天下午
""")  # fmt: skip
PART_OF_DAY = [time for time in HABIT if time.en in ("in the morning", "in the evening", "on weekends")]
WEEKLY = [
    time
    for time in HABIT
    if time.en in ("every week", "every weekend", "on weekends")
    or time.en.removeprefix("every ") in {day[0] for day in WEEKDAYS}
]
NEVER = Adverb("never", "nie", "从来不")
