"""People: professions, roles, family, first names, and the animals they keep."""

from __future__ import annotations

from .lexicon import nouns, rows

PROFESSIONS = nouns("person", """
teacher, teachers, der Lehrer, Lehrer, 老师 位, f=Lehrerin
doctor, doctors, der Arzt, Ärzte, 医生 位, f=Ärztin
engineer, engineers, der Ingenieur, Ingenieure, 工程师 位, f=Ingenieurin
lawyer, lawyers, der Anwalt, Anwälte, 律师 位, f=Anwältin
cook, cooks, der Koch, Köche, 厨师 位, f=Köchin
baker, bakers, der Bäcker, Bäcker, 面包师 位, f=Bäckerin
farmer, farmers, der Bauer, Bauern, 农民 位, weak, f=Bäuerin
singer, singers, der Sänger, Sänger, 歌手 位, f=Sängerin
actor, actors, der Schauspieler, Schauspieler, 演员 位, f=Schauspielerin
writer, writers, der Schriftsteller, Schriftsteller, 作家 位, f=Schriftstellerin
journalist, journalists, der Journalist, Journalisten, 记者 位, weak, f=Journalistin
painter, painters, der Maler, Maler, 画家 位, f=Malerin
musician, musicians, der Musiker, Musiker, 音乐家 位, f=Musikerin
student, students, der Student, Studenten, 大学生 位, weak, f=Studentin
police officer, police officers, der Polizist, Polizisten, 警察 位, weak, f=Polizistin
bus driver, bus drivers, der Busfahrer, Busfahrer, 公交司机 位, f=Busfahrerin
pilot, pilots, der Pilot, Piloten, 飞行员 位, weak, f=Pilotin
scientist, scientists, der Wissenschaftler, Wissenschaftler, 科学家 位, f=Wissenschaftlerin
programmer, programmers, der Programmierer, Programmierer, 程序员 位, f=Programmiererin
architect, architects, der Architekt, Architekten, 建筑师 位, weak, f=Architektin
photographer, photographers, der Fotograf, Fotografen, 摄影师 位, weak, f=Fotografin
mechanic, mechanics, der Mechaniker, Mechaniker, 修理工 位, f=Mechanikerin
gardener, gardeners, der Gärtner, Gärtner, 园丁 位, f=Gärtnerin
hairdresser, hairdressers, der Friseur, Friseure, 理发师 位, f=Friseurin
dentist, dentists, der Zahnarzt, Zahnärzte, 牙医 位, f=Zahnärztin
""")  # fmt: skip

ROLES = nouns("person", """
neighbor, neighbors, der Nachbar, Nachbarn, 邻居 位, weak
colleague, colleagues, der Kollege, Kollegen, 同事 位, weak
friend, friends, der Freund, Freunde, 朋友 位
guest, guests, der Gast, Gäste, 客人 位
customer, customers, der Kunde, Kunden, 顾客 位, weak
patient, patients, der Patient, Patienten, 病人 位, weak
tourist, tourists, der Tourist, Touristen, 游客 位, weak
boss, bosses, der Chef, Chefs, 老板 位
nurse, nurses, die Krankenschwester, Krankenschwestern, 护士 位
waiter, waiters, der Kellner, Kellner, 服务员 位
man, men, der Mann, Männer, 男人 个
woman, women, die Frau, Frauen, 女人 个
""")  # fmt: skip

YOUNG = nouns("child", """
boy, boys, der Junge, Jungen, 男孩 个, weak
girl, girls, das Mädchen, Mädchen, 女孩 个
child, children, das Kind, Kinder, 孩子 个
""")  # fmt: skip

# Chinese says 我妈妈 without 的; brothers and sisters are older or younger ones.
KIN = nouns("kin", """
mother, -, die Mutter, Mütter, 妈妈 位
father, -, der Vater, Väter, 爸爸 位
grandmother, -, die Großmutter, Großmütter, 奶奶 位
grandfather, -, der Großvater, Großväter, 爷爷 位
aunt, aunts, die Tante, Tanten, 阿姨 位
uncle, uncles, der Onkel, Onkel, 叔叔 位
older sister, older sisters, die Schwester, Schwestern, 姐姐 个, adj=älter
older brother, older brothers, der Bruder, Brüder, 哥哥 个, adj=älter
daughter, daughters, die Tochter, Töchter, 女儿 个
son, sons, der Sohn, Söhne, 儿子 个
parents, parents, die Eltern, Eltern, 父母 位
grandparents, grandparents, die Großeltern, Großeltern, 爷爷奶奶 位
""")  # fmt: skip
YOUNG_KIN = nouns("child kin", """
little sister, little sisters, die Schwester, Schwestern, 妹妹 个, adj=klein
little brother, little brothers, der Bruder, Brüder, 弟弟 个, adj=klein
children, children, die Kinder, Kinder, 孩子 个
""")  # fmt: skip

ANIMALS = nouns("animal", """
dog, dogs, der Hund, Hunde, 狗 只
cat, cats, die Katze, Katzen, 猫 只
bird, birds, der Vogel, Vögel, 鸟 只
horse, horses, das Pferd, Pferde, 马 匹
cow, cows, die Kuh, Kühe, 奶牛 头
chicken, chickens, das Huhn, Hühner, 鸡 只
pig, pigs, das Schwein, Schweine, 猪 头
sheep, sheep, das Schaf, Schafe, 羊 只
rabbit, rabbits, das Kaninchen, Kaninchen, 兔子 只
duck, ducks, die Ente, Enten, 鸭子 只
elephant, elephants, der Elefant, Elefanten, 大象 头, weak
monkey, monkeys, der Affe, Affen, 猴子 只, weak
lion, lions, der Löwe, Löwen, 狮子 头, weak
bear, bears, der Bär, Bären, 熊 只, weak
""")  # fmt: skip

# English, German, Chinese, gender.
NAMES = list(rows("""
Anna, Anna, 安娜, f
Lucy, Lucy, 露西, f
Nina, Nina, 尼娜, f
Laura, Laura, 劳拉, f
Emma, Emma, 艾玛, f
Sophie, Sophie, 苏菲, f
Lisa, Lisa, 丽莎, f
Sarah, Sarah, 莎拉, f
Eva, Eva, 伊娃, f
Paul, Paul, 保罗, m
Peter, Peter, 彼得, m
Jack, Jack, 杰克, m
Martin, Martin, 马丁, m
David, David, 大卫, m
Tom, Tom, 汤姆, m
Leo, Leo, 利奥, m
Simon, Simon, 西蒙, m
Mark, Mark, 马克, m
Tim, Tim, 蒂姆, m
Erik, Erik, 埃里克, m
Ben, Ben, 贝恩, m
Mia, Mia, 米娅, f
Lena, Lena, 莉娜, f
Karl, Karl, 卡尔, m
"""))  # fmt: skip
