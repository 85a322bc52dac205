"""Verbs with their frames, and the objects that are part of a verb: sports, instruments, languages.

Columns: English | German | Chinese pattern | Chinese pattern with 把 | case of the object with its English
preposition | objects | places | flags. A flag says: `skill` one can have learned it (会), `adult` no
child does it, `state` no progressive and no past, `past` only told afterwards, `known` the object is a
known one (the, my), `a` a new one, `plural` many, `daily` it happens at a clock time within the hours
given behind, `once` it is no habit, `long` it takes days, `ongoing` it has no result (no 了), `own` one does it
with things of one's own, `made` the thing comes to be by it (no old one).
"""

from __future__ import annotations

import re

from . import english, german
from .lexicon import VerbEntry, nouns
from .lexicon_places import LANGUAGES

GAMES = nouns("game", """
football, -, der Fußball, Fußball, 足球 场
basketball, -, der Basketball, Basketball, 篮球 场
tennis, -, das Tennis, Tennis, 网球 场
table tennis, -, das Tischtennis, Tischtennis, 乒乓球 场
volleyball, -, der Volleyball, Volleyball, 排球 场
badminton, -, das Badminton, Badminton, 羽毛球 场
cards, -, das Karten, Karten, 牌 场
chess, -, das Schach, Schach, 国际象棋 盘
the piano, -, das Klavier, Klavier, 钢琴 架
the guitar, -, das Gitarre, Gitarre, 吉他 把
the violin, -, das Geige, Geige, 小提琴 把
""")  # fmt: skip
BARE = nouns("bare", """
music, -, die Musik, Musik, 音乐 首
stamps, -, das Briefmarken, Briefmarken, 邮票 张
coins, -, das Münzen, Münzen, 硬币 枚
postcards, -, das Postkarten, Postkarten, 明信片 张
noodles, -, das Nudeln, Nudeln, 面条 碗
dumplings, -, das Teigtaschen, Teigtaschen, 饺子 盘
vegetables, -, das Gemüse, Gemüse, 蔬菜 份
""")  # fmt: skip
LANGUAGE_NOUNS = {
    noun.en: noun for en, de, zh in LANGUAGES for noun in nouns("bare", f"{en}, -, das {de}, {de}, {zh} 门").values()
}

_TRANSITIVE = """
read-read-read | lesen, liest, gelesen | 看*~ | | acc | reading; mail | leisure |
write-wrote-written | schreiben, schreibt, geschrieben | 写*~ | | acc | mail; article; poem; report; story | leisure | a made
buy-bought-bought | kaufen, kauft, gekauft | 买*~ | | acc | thing; household; furniture; machine; clothes; food; provision; plant; reading; vegetables | shop |
sell-sold-sold | verkaufen, verkauft, verkauft | 卖*~ | 把~卖掉* | acc | furniture; vehicle; camera; guitar; violin; ring; house; apartment; computer; picture | | adult known once long
repair | reparieren, repariert, repariert | 修理*~ | 把~修好* | acc | vehicle; machine; chair; watch; camera | garage | adult own
clean | putzen, putzt, geputzt | 打扫*~ | 把~打扫干净* | acc | kitchen; bathroom; living room; bedroom; office | | known
tidy up | auf|räumen, räumt, aufgeräumt | 收拾*~ | 把~收拾好* | acc | kitchen; garage; living room; bedroom; desk; cupboard | | known
wash | waschen, wäscht, gewaschen | 洗*~ | 把~洗干净* | acc | shirt; skirt; sweater; dress; jacket; blanket; towel; scarf | bathroom | own
open | öffnen, öffnet, geöffnet | 打开*~ | 把~打开* | acc | fixture; suitcase; bottle; letter; present | | known
close | schließen, schließt, geschlossen | 关上*~ | 把~关上* | acc | fixture | | known
watch | sehen, sieht, gesehen | 看*~ | | acc | film | cinema |
visit | besuchen, besucht, besucht | 参观*~ | | acc | exhibition; museum; castle; factory; zoo; church; university | | long
organize | organisieren, organisiert, organisiert | 举办*~ | | acc | concert; exhibition | culture | adult once long
listen to | hören, hört, gehört | 听*~ | | acc | song; music; concert | leisure | bare
sing-sang-sung | singen, singt, gesungen | 唱*~ | | acc | song | music |
paint | malen, malt, gemalt | 画*~ | | acc | picture; flower; tree; house; horse; bird; cat; castle; rose; village | leisure | a
photograph | fotografieren, fotografiert, fotografiert | 拍*~ | | acc | building; animal; tree; church | |
eat-ate-eaten | essen, isst, gegessen | 吃*~ | 把~吃掉* | acc | food; provision; noodles; dumplings; vegetables | eat |
drink-drank-drunk | trinken, trinkt, getrunken | 喝*~ | | acc | drink | eat |
order | bestellen, bestellt, bestellt | 点*~ | | acc | pizza; salad; soup; sandwich; drink; fish; cake; noodles; dumplings | order |
cook | kochen, kocht, gekocht | 煮*~ | | acc | soup; rice; egg; potato; meat; noodles; dumplings; vegetables | kitchen | made
bake | backen, backt, gebacken | 烤*~ | | acc | cake; bread; pizza; cookie | kitchen | made
taste | probieren, probiert, probiert | 尝*~ | | acc | cake; soup; cheese; salad; sausage; chocolate; ham; pizza; yogurt; honey; juice | market |
learn | lernen, lernt, gelernt | 学*~ | | acc | language | study | ongoing
speak-spoke-spoken | sprechen, spricht, gesprochen | 说*~ | | acc | language | office | skill
play | spielen, spielt, gespielt | 踢*~ | | acc | football | sport | skill
play | spielen, spielt, gespielt | 打*~ | | acc | basketball; tennis; table tennis; volleyball; badminton | sport | skill
play | spielen, spielt, gespielt | 打*~ | | acc | cards | leisure |
play | spielen, spielt, gespielt | 下*~ | | acc | chess | leisure | skill
play | spielen, spielt, gespielt | 弹*~ | | acc | the piano; the guitar | music | skill
play | spielen, spielt, gespielt | 拉*~ | | acc | the violin | music | skill
visit | besuchen, besucht, besucht | 看望*~ | | acc | person; kin; child kin | |
help | helfen, hilft, geholfen | 帮助*~ | | dat | person; kin; child kin; child | anywhere |
call | an|rufen, ruft, angerufen | 给~打*电话 | | acc | person; kin; child kin | |
thank | danken, dankt, gedankt | 感谢*~ | | dat | person; kin | | known
wait for | warten, wartet, gewartet | 等*~ | | auf acc | person; kin; child kin | wait | ongoing
wait for | warten, wartet, gewartet | 等*~ | | auf acc | transport | stop | ongoing
look for | suchen, sucht, gesucht | 找*~ | | acc | thing; cat; dog; hat; scarf | anywhere | known once ongoing
find-found-found | finden, findet, gefunden | 找到*~ | | acc | thing; ring; scarf | anywhere | past known
lose-lost-lost | verlieren, verliert, verloren | 弄丢*~ | 把~弄丢* | acc | key; wallet; umbrella; ticket; passport; ring; watch; cell phone; camera; hat; scarf; backpack; map | anywhere | past known
meet-met-met | treffen, trifft, getroffen | 跟~见^面* | | acc | person; kin | meet |
invite | ein|laden, lädt, eingeladen | 邀请*~ | | acc | person; kin | |
ask | fragen, fragt, gefragt | 问*~ | | acc | person; kin | | known
greet | begrüßen, begrüßt, begrüßt | 跟~打*招呼 | | acc | person; child | anywhere |
hug | umarmen, umarmt, umarmt | 拥抱*~ | | acc | kin; child kin; friend | station | known
interview | interviewen, interviewt, interviewt | 采访*~ | | acc | singer; actor; writer; scientist; musician; painter; farmer; lawyer; architect; pilot; police officer | hotel | adult
answer | beantworten, beantwortet, beantwortet | 回答*~ | | acc | question | | known
correct | korrigieren, korrigiert, korrigiert | 修改*~ | | acc | test; text; exercise; sentence; article; report | office | adult
translate | übersetzen, übersetzt, übersetzt | 翻译*~ | 把~翻译好* | acc | article; text; poem; novel; letter; email; contract; report; sentence; fairy tale | office | adult
sign | unterschreiben, unterschreibt, unterschrieben | 签*~ | | acc | contract | office | adult once
pay-paid-paid | bezahlen, bezahlt, bezahlt | 付*~ | | acc | bill | restaurant | adult known once
rent | mieten, mietet, gemietet | 租*~ | | acc | house; apartment; car; boat; bicycle; motorcycle | | adult a once long
build-built-built | bauen, baut, gebaut | 建*~ | | acc | house; bridge; tower; school; hotel; hospital; stadium; factory | | adult a once long made
turn on | ein|schalten, schaltet, eingeschaltet | 打开*~ | 把~打开* | acc | lamp; television; radio; computer; washing machine; printer | | known
turn off | aus|schalten, schaltet, ausgeschaltet | 关掉*~ | 把~关掉* | acc | lamp; television; radio; computer; washing machine; printer | | known
pick up | ab|holen, holt, abgeholt | 接*~ | | acc | kin; child kin; guest; friend; tourist; colleague; boss | stop | adult
feed-fed-fed | füttern, füttert, gefüttert | 喂*~ | | acc | dog; cat; bird; horse; cow; chicken; pig; sheep; rabbit; duck | | own
water | gießen, gießt, gegossen | 给~浇*水 | | acc | flower; rose; tree | garden | known
plant | pflanzen, pflanzt, gepflanzt | 种*~ | | acc | flower; tree; rose | garden | plural made
borrow | aus|leihen, leiht, ausgeliehen | 借*~ | | acc | book; novel; magazine; dictionary | library |
try on | an|probieren, probiert, anprobiert | 试穿*~ | | acc | shirt; coat; jacket; sweater; suit | department store | once worn
put-put-put on | an|ziehen, zieht, angezogen | 穿上*~ | 把~穿上* | acc | shirt; coat; jacket; sweater; suit; uniform | | known once worn
take-took-taken off | aus|ziehen, zieht, ausgezogen | 脱掉*~ | 把~脱掉* | acc | shirt; coat; jacket; sweater; suit; uniform | | known once worn
pack | packen, packt, gepackt | 收拾*~ | 把~收拾好* | acc | suitcase; backpack; bag | bedroom | known
lock | ab|schließen, schließt, abgeschlossen | 锁上*~ | 把~锁上* | acc | door; car; bicycle; cupboard | | known
miss | verpassen, verpasst, verpasst | 错过*~ | | acc | bus; train; tram | | past known
take-took-taken | nehmen, nimmt, genommen | 坐*~ | | acc | bus; train; taxi; tram | | known
print | aus|drucken, druckt, ausgedruckt | 打印*~ | 把~打印出来* | acc | ticket; map; report; contract; email; text; photo; article; bill | office |
check | überprüfen, überprüft, überprüft | 检查*~ | | acc | bill; report; contract; ticket; passport; computer; exercise | office | adult
prepare | vor|bereiten, bereitet, vorbereitet | 准备*~ | | acc | test; report; concert; exercise; exhibition | office | adult
collect | sammeln, sammelt, gesammelt | 收集*~ | | acc | stamps; coins; postcards | | ongoing
choose-chose-chosen | aus|suchen, sucht, ausgesucht | 挑选*~ | | acc | present; ring; tie; watch; carpet; lamp; sofa; doll; bicycle | department store | once
carry | tragen, trägt, getragen | 搬*~ | | acc | table; chair; suitcase; carpet; shelf; mirror; television | | once
hide-hid-hidden | verstecken, versteckt, versteckt | 藏*~ | 把~藏起来* | acc | present; key; wallet; chocolate; letter; ring | home | known once
break-broke-broken | zerbrechen, zerbricht, zerbrochen | 打碎*~ | 把~打碎* | acc | cup; plate; vase; bottle; mirror | home | past
admire | bewundern, bewundert, bewundert | 欣赏*~ | | acc | picture; castle; exhibition; tower; church; bridge | | once
describe | beschreiben, beschreibt, beschrieben | 描述*~ | | acc | picture; house; street; village; castle | | known once
use | benutzen, benutzt, benutzt | 使用*~ | | acc | computer; dictionary; printer; camera; map; washing machine; cell phone | office | own
need | brauchen, braucht, gebraucht | 需要~ | | acc | thing; household; machine; furniture; clothes | | state
know-knew-known | kennen, kennt, gekannt | 认识~ | | acc | person; kin | | state known
understand-understood-understood | verstehen, versteht, verstanden | 明白~ | | acc | question; word; sentence; text; exercise | | state known
like | mögen, mag, gemocht | 喜欢~ | | acc | film; song; picture; exhibition; dress; house; village; novel; story; dog; cat; garden | | state known
"""
_INTRANSITIVE = """
sleep-slept-slept | schlafen, schläft, geschlafen | 睡^觉* | | | | sleep | ongoing
work | arbeiten, arbeitet, gearbeitet | 工作 | | | | work | adult ongoing
study | lernen, lernt, gelernt | 学习 | | | | study | ongoing
dance | tanzen, tanzt, getanzt | 跳^舞* | | | | dance | skill
swim-swam-swum | schwimmen, schwimmt, ist geschwommen | 游^泳* | | | | water | skill
cook | kochen, kocht, gekocht | 做^饭* | | | | kitchen | skill
go-went-gone for a walk | spazieren |gehen, geht, ist spazieren gegangen | 散^步* | | | | outside |
jog | joggen, joggt, ist gejoggt | 跑^步* | | | | outside |
rest | sich aus|ruhen, ruht, ausgeruht | 休息* | | | | leisure | ongoing
have-had-had breakfast | frühstücken, frühstückt, gefrühstückt | 吃^早饭* | | | | eat | daily 6-10
have-had-had lunch | zu Mittag |essen, isst, zu Mittag gegessen | 吃^午饭* | | | | eat | daily 11-13
have-had-had dinner | zu Abend |essen, isst, zu Abend gegessen | 吃^晚饭* | | | | eat | daily 17-21
watch TV | fern|sehen, sieht, ferngesehen | 看^电视* | | | | living room |
camp | zelten, zeltet, gezeltet | 露营* | | | | outside |
fish | angeln, angelt, geangelt | 钓^鱼* | | | | lake |
go-went-gone shopping | ein|kaufen, kauft, eingekauft | 买^东西* | | | | shop |
take-took-taken a shower | duschen, duscht, geduscht | 洗^澡* | | | | bathroom | daily 6-11
get-got-gotten up | auf|stehen, steht, ist aufgestanden | 起床* | | | | | daily 5-10
go-went-gone to bed | ins Bett |gehen, geht, ist ins Bett gegangen | 上床睡觉* | | | | | daily 20-23
come-came-come home | nach Hause |kommen, kommt, ist nach Hause gekommen | 回家* | | | | | daily 15-21
leave-left-left the house | aus dem Haus |gehen, geht, ist aus dem Haus gegangen | 出门* | | | | | daily 6-11
start work | mit der Arbeit |beginnen, beginnt, mit der Arbeit begonnen | 开始工作* | | | | | daily adult 6-11
"""
# `@` is the receiver; the English order is `verb receiver thing` or, with `to`, `verb thing to receiver`.
_DITRANSITIVE = """
give-gave-given | geben, gibt, gegeben | 给*@~ | | dat acc | book; key; pencil; camera; notebook; ticket; umbrella; dictionary; ball; flower; present; apple; map | | once
show-showed-shown | zeigen, zeigt, gezeigt | 给@看*~ | | dat acc | photo; picture; letter; ticket; passport; map; ring; watch; report; house; dress | | own
send-sent-sent | schicken, schickt, geschickt | 给@寄*~ | | dat acc | letter; postcard; present; photo; bill; book | |
send-sent-sent | schicken, schickt, geschickt | 给@发*~ | | dat acc | email; message | |
bring-brought-brought | bringen, bringt, gebracht | 给@带*~ | | dat acc | present; cake; flower; sandwich; newspaper; doll; book; basket; soup; magazine | |
buy-bought-bought | kaufen, kauft, gekauft | 给@买*~ | | dat acc | present; bicycle; coat; doll; computer; dress; hat; ball; book; ring; guitar; rabbit | | adult once
lend-lent-lent | leihen, leiht, geliehen | 借给*@~ | | dat acc | book; bicycle; camera; umbrella; dictionary; suitcase; guitar; pencil; car; tie | | own once
tell-told-told | erzählen, erzählt, erzählt | 给@讲*~ | | dat acc | story; fairy tale | |
explain | erklären, erklärt, erklärt | 给@解释*~ | | dat acc to | word; sentence; text; exercise; question; poem; contract | | adult
read-read-read | vor|lesen, liest, vorgelesen | 给@读*~ | | dat acc to | letter; story; poem; article; fairy tale; newspaper; report | |
recommend | empfehlen, empfiehlt, empfohlen | 给@推荐*~ | | dat acc to | book; film; hotel; restaurant; novel; exhibition; museum; song; dictionary | | once
"""


# What one does for fun, and what has to be done.
FUN = {
    "read",
    "watch",
    "listen to",
    "sing",
    "paint",
    "play",
    "dance",
    "swim",
    "go for a walk",
    "jog",
    "rest",
    "watch TV",
    "camp",
    "fish",
    "bake",
    "go shopping",
}
CHORES = {
    "clean", "tidy up", "wash", "repair", "pay", "correct", "translate", "pack", "water", "feed", "check", "prepare", "cook", "work", "study",
    "print", "write", "learn", "carry",
}  # fmt: skip
# What one does with others.
SOCIAL = FUN | {
    "eat",
    "drink",
    "cook",
    "bake",
    "visit",
    "order",
    "rent",
    "organize",
    "prepare",
    "plant",
    "translate",
    "have breakfast",
    "have lunch",
    "have dinner",
    "build",
}
INDOOR = {"read", "watch", "listen to", "watch TV", "bake", "cook", "tidy up", "clean", "write"}
OUTDOOR = {"swim", "go for a walk", "jog", "camp", "fish", "photograph", "water", "plant", "feed"}
DAILY = (
    FUN
    | CHORES
    | {
        "eat",
        "drink",
        "take",
        "open",
        "close",
        "turn on",
        "turn off",
        "call",
        "help",
        "wait for",
        "use",
        "speak",
        "lock",
        "greet",
        "sleep",
    }
)
TAGS = {"indoor": INDOOR, "outdoor": OUTDOOR, "fun": FUN, "chore": CHORES, "social": SOCIAL}


def _entry(line: str) -> VerbEntry:
    en, de, zh, definite, case, objects, places, flags = (part.strip() for part in _columns(line))
    base, _, preposition = en.partition(" ")
    if preposition not in ("to", "for"):
        base, preposition = en, ""
    reflexive = de.startswith("sich ")
    return VerbEntry(
        english.verb(base), german.verb(de.removeprefix("sich ")), zh, definite, case, preposition,
        tuple(name.strip() for name in objects.split(";") if name.strip()), places, frozenset(flags.split()), reflexive,
    )  # fmt: skip


def _columns(line: str) -> list[str]:
    """Split at bars with a space on both sides, which leaves prefixes (`ein|laden`) whole."""
    columns = re.split(r" \|(?= |$)", line)
    return columns + [""] * (8 - len(columns))


TRANSITIVE = [_entry(line) for line in _TRANSITIVE.strip().splitlines()]
INTRANSITIVE = [_entry(line) for line in _INTRANSITIVE.strip().splitlines()]
DITRANSITIVE = [_entry(line) for line in _DITRANSITIVE.strip().splitlines()]
