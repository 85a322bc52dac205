"""Adjectives by what they can be said of, with their comparatives."""

from __future__ import annotations

from .lexicon import Adjective, Noun, adjectives

_PERSON = adjectives("""
young, jung, jünger, 年轻的, 年轻
friendly, freundlich, freundlicher, 友好的, 友好
famous, berühmt, berühmter, 有名的, 有名
clever, klug, klüger, 聪明的, 聪明
polite, höflich, höflicher, 有礼貌的, 有礼貌
tall, groß, größer, 高个子的, 高
rich, reich, reicher, 有钱的, 有钱
hard-working, fleißig, fleißiger, 勤奋的, 勤奋
patient, geduldig, geduldiger, 耐心的, 耐心
brave, mutig, mutiger, 勇敢的, 勇敢
busy, beschäftigt, beschäftigter, 忙碌的, 忙
strong, stark, stärker, 强壮的, 强壮
cheerful, fröhlich, fröhlicher, 开朗的, 开朗
""")  # fmt: skip
_CHILD = adjectives("""
friendly, freundlich, freundlicher, 友好的, 友好
clever, klug, klüger, 聪明的, 聪明
polite, höflich, höflicher, 有礼貌的, 有礼貌
brave, mutig, mutiger, 勇敢的, 勇敢
cheerful, fröhlich, fröhlicher, 开朗的, 开朗
curious, neugierig, neugieriger, 好奇的, 好奇
""")  # fmt: skip
MOODS = adjectives("""
tired, müde, müder, 疲倦的, 累
happy, glücklich, glücklicher, 高兴的, 高兴
sad, traurig, trauriger, 伤心的, 伤心
angry, wütend, wütender, 生气的, 生气
hungry, hungrig, hungriger, 饿的, 饿
thirsty, durstig, durstiger, 渴的, 渴
nervous, nervös, nervöser, 紧张的, 紧张
satisfied, zufrieden, zufriedener, 满意的, 满意
disappointed, enttäuscht, enttäuschter, 失望的, 失望
busy, beschäftigt, beschäftigter, 忙碌的, 忙
""")  # fmt: skip
_SIZE = "big, groß, größer, 大, 大\nsmall, klein, kleiner, 小, 小\n"
_AGE = "new, neu, neuer, 新, 新\nold, alt, älter, 旧, 旧\n"
_PRICE = "expensive, teuer, teurer, 昂贵的, 贵\ncheap, billig, billiger, 便宜的, 便宜\n"
_LOOK = "beautiful, schön, schöner, 漂亮的, 漂亮\n"
COLORS = adjectives("""
red, rot, röter, 红色, 红色的
blue, blau, blauer, 蓝色, 蓝色的
green, grün, grüner, 绿色, 绿色的
yellow, gelb, gelber, 黄色, 黄色的
black, schwarz, schwärzer, 黑色, 黑色的
white, weiß, weißer, 白色, 白色的
brown, braun, brauner, 棕色, 棕色的
gray, grau, grauer, 灰色, 灰色的
""")  # fmt: skip
_STORY = adjectives("""
interesting, interessant, interessanter, 有意思的, 有意思
boring, langweilig, langweiliger, 无聊的, 无聊
exciting, spannend, spannender, 精彩的, 精彩
funny, lustig, lustiger, 有趣的, 有趣
long, lang, länger, 长长的, 长
short, kurz, kürzer, 短短的, 短
famous, berühmt, berühmter, 有名的, 有名
sad, traurig, trauriger, 悲伤的, 悲伤
""")  # fmt: skip
_THING = adjectives(
    _SIZE
    + _AGE
    + _PRICE
    + _LOOK
    + "heavy, schwer, schwerer, 沉重的, 重\nlight, leicht, leichter, 轻便的, 轻\npractical, praktisch, praktischer, 实用的, 实用\n"
)
_FOOD = adjectives("""
fresh, frisch, frischer, 新鲜的, 新鲜
delicious, lecker, leckerer, 好吃的, 好吃
expensive, teuer, teurer, 昂贵的, 贵
""")  # fmt: skip
_DRINK = adjectives("""
hot, heiß, heißer, 热, 热
cold, kalt, kälter, 冷的, 冷
""")  # fmt: skip
_BUILDING = adjectives(_SIZE + "new, neu, neuer, 新, 新\nold, alt, älter, 古老的, 古老\n" + _LOOK + """
modern, modern, moderner, 现代的, 现代
famous, berühmt, berühmter, 有名的, 有名
quiet, ruhig, ruhiger, 安静的, 安静
""")  # fmt: skip
_ANIMAL = adjectives(_SIZE + """
clever, klug, klüger, 聪明的, 聪明
lazy, faul, fauler, 懒惰的, 懒
hungry, hungrig, hungriger, 饥饿的, 饿
beautiful, schön, schöner, 漂亮的, 漂亮
""")  # fmt: skip
_TASK = adjectives("""
difficult, schwierig, schwieriger, 难的, 难
easy, einfach, einfacher, 简单的, 简单
important, wichtig, wichtiger, 重要的, 重要
long, lang, länger, 长长的, 长
short, kurz, kürzer, 短短的, 短
new, neu, neuer, 新, 新
""")  # fmt: skip
_PLANT = adjectives(_SIZE + _LOOK)
_CLOTHES = (
    adjectives(
        _AGE
        + _PRICE
        + _LOOK
        + "warm, warm, wärmer, 暖和的, 暖和\nelegant, elegant, eleganter, 优雅的, 优雅\nclean, sauber, sauberer, 干净的, 干净\ndirty, schmutzig, schmutziger, 脏, 脏\n"
    )
    + COLORS
)

# Plain qualities can be compared; colors only stand before nouns.
QUALITIES: dict[str, list[Adjective]] = {
    "person": _PERSON, "child": _CHILD, "kin": [], "child kin": [], "animal": _ANIMAL, "reading": _STORY,
    "mail": [item for item in _STORY if item.en in ("interesting", "long", "short", "funny", "sad")],
    "thing": _THING, "household": _THING, "furniture": _THING, "machine": _THING, "clothes": _CLOTHES[: -len(COLORS)],
    "vehicle": adjectives(_SIZE + _AGE + _PRICE + _LOOK + "fast, schnell, schneller, 快速的, 快\nclean, sauber, sauberer, 干净的, 干净\ndirty, schmutzig, schmutziger, 脏, 脏\n"),
    "transport": [], "building": _BUILDING, "place": _BUILDING, "fixture": [item for item in _THING if item.en in ("big", "small", "old", "new")],
    "food": _FOOD, "provision": _FOOD, "drink": _DRINK,
    "culture": [item for item in _STORY if item.en not in ("long", "short")], "plant": _PLANT, "task": _TASK,
}  # fmt: skip
COLORED_GROUPS = {"clothes", "vehicle", "furniture"}
COLORED_NOUNS = [
    "bag",
    "umbrella",
    "backpack",
    "suitcase",
    "pencil",
    "ball",
    "vase",
    "cup",
    "towel",
    "blanket",
    "candle",
    "lamp",
    "notebook",
]
# Nouns for which only some adjectives make sense.
SELECTED = {
    "song": "beautiful sad famous funny", "picture": "beautiful famous funny small big", "film": "interesting boring exciting funny sad",
    "concert": "beautiful boring", "exhibition": "interesting boring famous", "word": "difficult easy long short new",
    "question": "difficult easy important", "sentence": "difficult easy long short", "exercise": "difficult easy long short",
    "text": "difficult easy long short", "test": "difficult easy short important", "contract": "new important long",
    "bill": "", "present": "beautiful expensive small big", "key": "new old small", "ticket": "expensive cheap",
    "photo": "beautiful old", "map": "old new big", "dictionary": "new old heavy", "passport": "new old",
    "wallet": "new old small", "newspaper": "", "message": "short long", "ring": "beautiful expensive cheap",
    "pencil": "new short long", "doll": "new old beautiful small", "ball": "new old", "guitar": "new old expensive cheap", "violin": "new old expensive cheap",
    "flower": "beautiful red white yellow", "rose": "beautiful red white yellow", "tree": "big small",
    "street": "long quiet beautiful famous", "village": "small quiet beautiful", "egg": "fresh", "soup": "hot delicious",
    "fairy tale": "interesting exciting funny short", "letter": "long short", "report": "interesting boring long short",
    "article": "interesting boring long short", "email": "long short", "postcard": "funny beautiful", "poem": "long short sad famous",
    "kitchen": "big small new", "bathroom": "big small new", "bedroom": "big small", "living room": "big small",
    "garage": "big small", "office": "big small new", "garden": "big small beautiful", "factory": "big small new modern",
    "zoo": "big small famous", "uniform": "new", "plate": "new big small", "knife": "new", "fork": "new", "spoon": "new small",
    "bottle": "big small", "candle": "big small", "apartment": "big small new expensive cheap quiet", "honey": "fresh delicious",
    "chocolate": "delicious expensive", "cookie": "delicious fresh", "cake": "delicious fresh", "pizza": "delicious",
    "salad": "fresh delicious", "sandwich": "delicious", "cheese": "fresh delicious", "rice": "", "bear": "big small", "tie": "elegant expensive cheap beautiful", "hat": "elegant new old expensive cheap",
    "bus stop": "new", "station": "big small new modern old", "supermarket": "big small new cheap", "cinema": "big small new old modern",
    "bank": "big small new modern", "post office": "big small new old", "pharmacy": "big small new modern", "bakery": "small new old",
    "bookstore": "big small quiet", "department store": "big new modern", "swimming pool": "big small new modern",
    "town hall": "beautiful old new famous", "hospital": "big small new modern", "school": "big small new modern old",
    "stadium": "big new modern famous", "market": "big small famous", "airport": "big small new modern", "restaurant": "big small famous quiet new",
    "house": "big small old new beautiful quiet", "beach": "beautiful quiet famous",
}  # fmt: skip
FAMOUS = {
    "singer",
    "actor",
    "writer",
    "painter",
    "musician",
    "scientist",
    "architect",
    "photographer",
    "cook",
    "lawyer",
}
BY_NAME = {
    item.en: item for pool in (_PERSON, _STORY, _BUILDING, _FOOD, _DRINK, _TASK, COLORS, _THING) for item in pool
}


def said_of(noun: Noun) -> list[Adjective]:
    """Return the qualities that can be said of the noun, without colors."""
    if noun.en in SELECTED:
        names = SELECTED[noun.en].split()
        fitting = [item for item in QUALITIES[noun.group] if item.en in names]
        known = {item.en for item in fitting}
        return fitting + [
            BY_NAME[name] for name in names if name not in known and name in BY_NAME and BY_NAME[name] not in COLORS
        ]
    fitting = QUALITIES.get(noun.group, [])
    if noun.group == "person" and noun.en not in FAMOUS:
        return [item for item in fitting if item.en != "famous"]
    return fitting


def before_noun(noun: Noun) -> list[Adjective]:
    """Return the adjectives that may stand before the noun."""
    fitting = [item for item in said_of(noun) if item.en not in ("clean", "dirty")]
    if noun.group in COLORED_GROUPS or noun.en in COLORED_NOUNS:
        return fitting + COLORS
    return fitting + [item for item in COLORS if item.en in SELECTED.get(noun.en, "").split()]
