"""The phrasebook corpus: what its grammar promises, and that the files in the repository are the grammar's."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from data.grammar import chinese, english, german, nominals  # noqa: E402
from data.grammar.draw import EVERY_NOUN  # noqa: E402
from data.grammar.generate import FOLDER, PARTS, corpus, packed  # noqa: E402
from data.grammar.lexicon_adjectives import COLORS, QUALITIES  # noqa: E402
from data.grammar.sentences import HANDWRITTEN, normalized  # noqa: E402
from data.grammar.split import Corpus  # noqa: E402

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def made() -> Corpus:
    return corpus()


# --- the files ---------------------------------------------------------------------------------


def test_the_files_are_what_the_grammar_makes(made: Corpus) -> None:
    for part, name in PARTS.items():
        stored = gzip.decompress((FOLDER / name).read_bytes()).decode()
        assert stored == "".join(sentence.row() for sentence in getattr(made, part)), (
            f"run python -m data.grammar: {name}"
        )


def test_packing_leaves_no_time_and_no_name(made: Corpus) -> None:
    header = packed(made.dev)[:10]
    assert header[3] == 0
    assert header[4:8] == bytes(4)


def test_the_files_are_small() -> None:
    assert sum((FOLDER / name).stat().st_size for name in PARTS.values()) < 3 * MEGABYTE


def test_every_row_has_four_columns(made: Corpus) -> None:
    for sentence in made.train + made.dev + made.test + made.handwritten_test:
        columns = sentence.row().rstrip("\n").split("\t")
        assert len(columns) == 4, sentence
        assert all(columns), sentence


# --- how much ----------------------------------------------------------------------------------


def test_the_corpus_is_large_and_varied(made: Corpus) -> None:
    grammar = [
        sentence for part in (made.train, made.dev, made.test) for sentence in part if sentence.structure != HANDWRITTEN
    ]
    words = [len(sentence.en.split()) for sentence in grammar]
    assert len({(sentence.en, sentence.de, sentence.zh) for sentence in grammar}) == len(grammar) >= 36_000
    assert len({sentence.structure for sentence in grammar}) >= 150
    assert len({sentence.structure for sentence in made.test}) >= 120
    assert sum(words) / len(words) >= 9
    assert len(made.test) == 1000


def test_an_english_sentence_has_one_translation(made: Corpus) -> None:
    grammar = [sentence for part in (made.train, made.dev, made.test) for sentence in part]
    assert len({normalized(sentence.en) for sentence in grammar}) == len(grammar)


# --- the split ---------------------------------------------------------------------------------


def test_no_sentence_and_no_combination_is_in_two_parts(made: Corpus) -> None:
    parts = [made.train, made.dev, made.test, made.handwritten_test]
    for key in (lambda sentence: normalized(sentence.en), lambda sentence: sentence.combination):
        seen = [{key(sentence) for sentence in part} for part in parts]
        assert all(first.isdisjoint(second) for index, first in enumerate(seen) for second in seen[index + 1 :])


def test_every_lemma_of_the_test_is_in_training(made: Corpus) -> None:
    known = {lemma for sentence in made.train for lemma in sentence.lemmas}
    assert all(known.issuperset(sentence.lemmas) for sentence in made.test)


# --- inflection --------------------------------------------------------------------------------


def phrase(build: object, noun: str, adjective: str, plural: bool = False) -> list[str]:
    quality = next(item for item in QUALITIES["clothes"] + COLORS if item.en == adjective)
    made = build(EVERY_NOUN[noun], quality, plural) if plural else build(EVERY_NOUN[noun], quality)
    return [made.de[case] for case in german.CASES]


@pytest.mark.parametrize(
    ("build", "noun", "adjective", "plural", "expected"),
    [
        (nominals.definite, "coat", "old", False, "der alte Mantel, den alten Mantel, dem alten Mantel"),
        (nominals.definite, "bag", "new", False, "die neue Tasche, die neue Tasche, der neuen Tasche"),
        (nominals.definite, "book", "red", False, "das rote Buch, das rote Buch, dem roten Buch"),
        (nominals.definite, "book", "red", True, "die roten Bücher, die roten Bücher, den roten Büchern"),
        (nominals.indefinite, "coat", "old", False, "ein alter Mantel, einen alten Mantel, einem alten Mantel"),
        (nominals.indefinite, "bag", "new", False, "eine neue Tasche, eine neue Tasche, einer neuen Tasche"),
        (nominals.indefinite, "book", "expensive", False, "ein teures Buch, ein teures Buch, einem teuren Buch"),
        (
            nominals.demonstrative,
            "ring",
            "beautiful",
            False,
            "dieser schöne Ring, diesen schönen Ring, diesem schönen Ring",
        ),
        (nominals.bare, "shirt", "white", True, "weiße Hemden, weiße Hemden, weißen Hemden"),
    ],
)
def test_articles_and_adjective_endings(build: object, noun: str, adjective: str, plural: bool, expected: str) -> None:
    assert ", ".join(phrase(build, noun, adjective, plural)) == expected


def test_weak_nouns_and_possessives() -> None:
    assert nominals.definite(EVERY_NOUN["student"]).de == {
        "nom": "der Student",
        "acc": "den Studenten",
        "dat": "dem Studenten",
    }
    assert nominals.definite(EVERY_NOUN["boy"]).de["acc"] == "den Jungen"
    assert nominals.possessed(EVERY_NOUN["neighbor"], "1pl").de["dat"] == "unserem Nachbarn"
    assert nominals.possessed(EVERY_NOUN["older sister"], "1sg").de["dat"] == "meiner älteren Schwester"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("ein|laden, lädt, eingeladen", "lade lädst lädt laden | einzuladen | lade"),
        ("an|rufen, ruft, angerufen", "rufe rufst ruft rufen | anzurufen | ruf"),
        ("warten, wartet, gewartet", "warte wartest wartet warten | zu warten | warte"),
        ("essen, isst, gegessen", "esse isst isst essen | zu essen | iss"),
        ("sammeln, sammelt, gesammelt", "sammle sammelst sammelt sammeln | zu sammeln | sammle"),
        ("spazieren |gehen, geht, ist spazieren gegangen", "gehe gehst geht gehen | spazieren zu gehen | geh"),
    ],
)
def test_german_verbs(spec: str, expected: str) -> None:
    verb = german.verb(spec)
    forms = " ".join(verb.present(agreement) for agreement in ("1sg", "2sg", "3sg", "1pl"))
    assert f"{forms} | {verb.zu_infinitive} | {verb.imperative()}" == expected


def test_contractions() -> None:
    assert german.contracted("in", "dem Park") == "im Park"
    assert german.contracted("zu", "der Bank") == "zur Bank"
    assert german.contracted("in", "die Schule") == "in die Schule"
    assert german.contracted("von", "dem Arzt") == "vom Arzt"


def test_english_forms() -> None:
    assert [english.verb(word).third for word in ("wash", "carry", "play", "have")] == [
        "washes",
        "carries",
        "plays",
        "has",
    ]
    assert [english.verb(word).gerund for word in ("swim", "bake", "see", "hug")] == [
        "swimming",
        "baking",
        "seeing",
        "hugging",
    ]
    assert [english.comparative(word) for word in ("big", "heavy", "expensive", "cheap")] == [
        "bigger",
        "heavier",
        "more expensive",
        "cheaper",
    ]
    assert [english.article(word) for word in ("apple", "uniform", "umbrella", "hat")] == ["an", "a", "an", "a"]


def test_measure_words_and_numerals() -> None:
    two = (2, "two", "zwei")
    names = ("book", "dog", "table", "letter", "horse", "car", "knife", "shirt", "bridge", "song")
    assert [nominals.counted(EVERY_NOUN[name], two).zh for name in names] == [
        "两本书", "两只狗", "两张桌子", "两封信", "两匹马", "两辆汽车", "两把刀", "两件衬衫", "两座桥", "两首歌",
    ]  # fmt: skip
    assert [chinese.numeral(number) for number in (2, 10, 12, 20, 35, 99)] == [
        "二",
        "十",
        "十二",
        "二十",
        "三十五",
        "九十九",
    ]


def test_aspect_marks() -> None:
    assert [chinese.with_aspect("游^泳*", aspect) for aspect in ("", "了", "过", "的")] == [
        "游泳",
        "游泳了",
        "游过泳",
        "游的泳",
    ]
    assert chinese.with_aspect("买*一本书", "了") == "买了一本书"


# --- sentences read by hand --------------------------------------------------------------------

GOLDEN = """
Simon always waits for the dentist in the hospital on weekends. | Simon wartet am Wochenende immer im Krankenhaus auf den Zahnarzt. | 西蒙周末总是在医院等那位牙医。 | habit_with_frequency
We have breakfast on the balcony at a quarter past eight every Monday. | Wir frühstücken jeden Montag um Viertel nach acht auf dem Balkon. | 我们每周一八点一刻在阳台上吃早饭。 | routine_at_clock
Your little brother did not go shopping in the supermarket this morning. | Dein kleiner Bruder hat heute Morgen nicht im Supermarkt eingekauft. | 你弟弟今早没在超市买东西。 | past_denied
Mark has just admired the modern tower. | Mark hat gerade den modernen Turm bewundert. | 马克刚欣赏了那座现代的塔。 | perfect_just
We have never washed a white skirt in the bathroom. | Wir haben noch nie im Badezimmer einen weißen Rock gewaschen. | 我们从来没在浴室里洗过白色裙子。 | perfect_never
Her parents went to the zoo with the friendly dentist the day before yesterday. | Ihre Eltern sind vorgestern mit dem freundlichen Zahnarzt in den Zoo gegangen. | 她父母前天跟那位友好的牙医一起去了动物园。 | motion_past
Next May you will fly to Canada with the farmers. | Nächsten Mai wirst du mit den Bauern nach Kanada fliegen. | 明年五月你会跟那些农民一起坐飞机去加拿大。 | journey_future
My children can dance, but they cannot cook. | Meine Kinder können tanzen, aber sie können nicht kochen. | 我的孩子们会跳舞，但是不会做饭。 | skill_but_no_skill
Your mother wanted to bake a cookie yesterday, but she had to learn Japanese. | Deine Mutter wollte gestern einen Keks backen, aber sie musste Japanisch lernen. | 你妈妈昨天想烤一块饼干，但是不得不学日语。 | wanted_but_had_to
Has the hard-working doctor ever picked up his colleagues? | Hat der fleißige Arzt schon einmal seine Kollegen abgeholt? | 那位勤奋的医生接过自己的同事们吗？ | ask_ever
Which poem did the tall mechanic write a few days ago? | Welches Gedicht hat der große Mechaniker vor ein paar Tagen geschrieben? | 那位高个子的修理工几天前写了哪首诗？ | which_did
Do you know who packed the blue bag in the bedroom yesterday evening? | Weißt du, wer gestern Abend die blaue Tasche im Schlafzimmer gepackt hat? | 你知道谁昨晚在卧室里把那个蓝色的包收拾好了吗？ | know_who_did
Her friend does not know whether we will eat fresh ham next week. | Ihr Freund weiß nicht, ob wir nächste Woche frischen Schinken essen werden. | 她的朋友不知道我们下周会不会吃新鲜的火腿。 | wonder_whether
Their guest is much more hard-working than the dentist. | Ihr Gast ist viel fleißiger als der Zahnarzt. | 他们的客人比那位牙医勤奋得多。 | much_more_than
This is the most modern hotel in Zurich. | Das ist das modernste Hotel in Zürich. | 这是苏黎世最现代的酒店。 | most_in_city
You have been learning Italian at the university for nine months. | Du lernst seit neun Monaten an der Universität Italienisch. | 你在大学学意大利语学了九个月了。 | learns_since
I signed these contracts last Wednesday before I checked a boring report. | Ich habe letzten Mittwoch diese Verträge unterschrieben, bevor ich einen langweiligen Bericht überprüft habe. | 我上周三检查一份无聊的报告之前，签了这些合同。 | before_past
The busy baker went to the stadium last Wednesday to help a journalist. | Der beschäftigte Bäcker ist letzten Mittwoch ins Stadion gegangen, um einem Journalisten zu helfen. | 那位忙碌的面包师上周三去体育场帮助了一位记者。 | went_in_order_to
Simon went to bed a few days ago without tidying up the desks. | Simon ist vor ein paar Tagen ins Bett gegangen, ohne die Schreibtische aufzuräumen. | 西蒙几天前没收拾那些书桌就上床睡觉了。 | without_doing
Sophie listened to music on the balcony last Friday instead of repairing a lamp. | Sophie hat letzten Freitag auf dem Balkon Musik gehört, statt eine Lampe zu reparieren. | 苏菲上周五没有修理灯，而是在阳台上听了音乐。 | instead_of_doing
Two days ago the bus drivers saw Laura studying at the school. | Vor zwei Tagen haben die Busfahrer gesehen, wie Laura in der Schule lernt. | 两天前那些公交司机看见劳拉在学校学习。 | saw_doing
Last Tuesday the mechanic danced in the theater and fished by the lake. | Letzten Dienstag hat der Mechaniker im Theater getanzt und am See geangelt. | 上周二那位修理工在剧院跳舞了，还在湖边钓鱼了。 | did_and_did
Sarah will either meet the strong architect next Tuesday or take the train. | Sarah wird nächsten Dienstag entweder den starken Architekten treffen oder den Zug nehmen. | 莎拉下周二要么跟那位强壮的建筑师见面，要么坐火车。 | either_or
In two days Sophie would rather play the piano than table tennis. | In zwei Tagen möchte Sophie lieber Klavier als Tischtennis spielen. | 两天后苏菲更想弹钢琴，而不是打乒乓球。 | would_rather_play
The easy test takes place in the town hall on the eighth of August. | Der einfache Test findet am achten August im Rathaus statt. | 那次简单的测验八月八日在市政厅举行。 | takes_place_on
Her older brother does not have time to take off my jacket today. | Ihr älterer Bruder hat heute keine Zeit, meine Jacke auszuziehen. | 她哥哥今天没有时间脱掉我的夹克。 | has_no_time_to
Could you please open your bottle the day after tomorrow? | Könntest du übermorgen bitte deine Flasche öffnen? | 请问你后天能打开你的瓶子吗？ | could_you_please
How many sofas did her daughter choose last Thursday? | Wie viele Sofas hat ihre Tochter letzten Donnerstag ausgesucht? | 她女儿上周四挑选了多少张沙发？ | how_many_did
They come from Japan, but now they live in Munich. | Sie kommen aus Japan, aber jetzt wohnen sie in München. | 他们来自日本，但是现在住在慕尼黑。 | comes_from
An hour ago they advised her uncle to go shopping in the supermarket. | Vor einer Stunde haben sie ihrem Onkel geraten, im Supermarkt einzukaufen. | 一小时前他们建议她叔叔在超市买东西。 | advised_to
This dictionary is as heavy as his new dictionary. | Dieses Wörterbuch ist so schwer wie sein neues Wörterbuch. | 这本词典跟他的新词典一样重。 | as_as
My children like to bake cakes in the kitchen. | Meine Kinder backen gern in der Küche Kuchen. | 我的孩子们喜欢在厨房里烤蛋糕。 | likes_to_do
This gray sofa was chosen by the doctor an hour ago. | Dieses graue Sofa wurde vor einer Stunde vom Arzt ausgesucht. | 这张灰色沙发是那位医生一小时前挑选的。 | was_made_by
The small kitchen was cleaned by the pilot two days ago. | Die kleine Küche wurde vor zwei Tagen vom Piloten geputzt. | 那间小厨房两天前被那位飞行员打扫干净了。 | was_done_by
This tie costs eighty-five euros, and this new spoon costs eighty euros. | Diese Krawatte kostet fünfundachtzig Euro, und dieser neue Löffel kostet achtzig Euro. | 这条领带八十五欧元，这把新勺子八十欧元。 | price_of_thing
The cupboard has already been tidied up by the cheerful singers. | Der Schrank ist schon von den fröhlichen Sängern aufgeräumt worden. | 那个柜子已经被那些开朗的歌手收拾好了。 | has_already_been_done
Emma has already swum in the swimming pool. | Emma ist schon im Schwimmbad geschwommen. | 艾玛已经在游泳池里游泳了。 | perfect_already
Whom did her grandparents meet at the airport a few days ago? | Wen haben ihre Großeltern vor ein paar Tagen am Flughafen getroffen? | 她爷爷奶奶几天前在机场跟谁见面了？ | whom_did
The lawyer saw an elephant and two ducks in the zoo this morning. | Der Anwalt hat heute Morgen im Zoo einen Elefanten und zwei Enten gesehen. | 那位律师今早在动物园看到了一头大象和两只鸭子。 | saw_animals_at_zoo
Let us ask the guest now! | Lass uns jetzt den Gast fragen! | 我们现在问那位客人吧！ | let_us
Last Wednesday the scientist allowed us to fish by the lake. | Letzten Mittwoch hat uns der Wissenschaftler erlaubt, am See zu angeln. | 上周三那位科学家允许我们在湖边钓鱼。 | allowed_to
Yesterday Jack not only opened his suitcase, but he also signed the contract. | Gestern hat Jack nicht nur seinen Koffer geöffnet, sondern er hat auch den Vertrag unterschrieben. | 昨天杰克不但把自己的行李箱打开了，而且还签了那份合同。 | not_only_but_also
They have lived in India with his grandmother for ten months. | Sie wohnen seit zehn Monaten mit seiner Großmutter in Indien. | 他们跟他奶奶一起在印度住了十个月了。 | lives_since
Two days ago they ate chocolate, and then they drank a cup of coffee. | Vor zwei Tagen haben sie Schokolade gegessen, und dann haben sie eine Tasse Kaffee getrunken. | 两天前他们吃了巧克力，然后喝了一杯咖啡。 | ate_and_then_drank
We are glad that they borrowed an exciting book yesterday afternoon. | Wir sind froh, dass sie gestern Nachmittag ein spannendes Buch ausgeliehen haben. | 我们很高兴他们昨天下午借了一本精彩的书。 | glad_that
I cannot find the suit that I put on two days ago. | Ich kann den Anzug nicht finden, den ich vor zwei Tagen angezogen habe. | 我找不到我两天前穿上的那套西装。 | cannot_find_thing_that
Can Paul admire a bridge next weekend? | Kann Paul nächstes Wochenende eine Brücke bewundern? | 保罗下周末能欣赏一座桥吗？ | ask_can
The customer with whom we planted big trees last Friday lives in Vienna. | Der Kunde, mit dem wir letzten Freitag große Bäume gepflanzt haben, wohnt in Wien. | 我们上周五跟他一起种大树的那位顾客住在维也纳。 | person_with_whom
While the writer is eating these oranges in the restaurant, we are speaking Russian. | Während der Schriftsteller diese Orangen im Restaurant isst, sprechen wir Russisch. | 那位作家正在餐厅吃这些橙子的时候，我们正在说俄语。 | while_both
"""


def test_the_golden_sentences_are_still_made(made: Corpus) -> None:
    everything = {sentence.row().rstrip("\n").replace("\t", " | ") for sentence in made.train}
    lines = GOLDEN.strip().splitlines()
    assert len(lines) >= 40
    assert [line for line in lines if line not in everything] == []
