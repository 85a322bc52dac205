"""Things one reads, eats, wears, drives, repairs …; the group decides what fits."""

from __future__ import annotations

from .lexicon import Noun, nouns

READING = nouns("reading", """
book, books, das Buch, Bücher, 书 本
newspaper, newspapers, die Zeitung, Zeitungen, 报纸 份
magazine, magazines, die Zeitschrift, Zeitschriften, 杂志 本
novel, novels, der Roman, Romane, 小说 本
article, articles, der Artikel, Artikel, 文章 篇
poem, poems, das Gedicht, Gedichte, 诗 首
story, stories, die Geschichte, Geschichten, 故事 个
report, reports, der Bericht, Berichte, 报告 份
fairy tale, fairy tales, das Märchen, Märchen, 童话 篇
""")  # fmt: skip
MAIL = nouns("mail", """
letter, letters, der Brief, Briefe, 信 封
email, emails, die E-Mail, E-Mails, 电子邮件 封
postcard, postcards, die Postkarte, Postkarten, 明信片 张
message, messages, die Nachricht, Nachrichten, 短信 条
""")  # fmt: skip
THINGS = nouns("thing", """
key, keys, der Schlüssel, Schlüssel, 钥匙 把
bag, bags, die Tasche, Taschen, 包 个
cell phone, cell phones, das Handy, Handys, 手机 部
umbrella, umbrellas, der Regenschirm, Regenschirme, 雨伞 把
wallet, wallets, die Geldbörse, Geldbörsen, 钱包 个
pencil, pencils, der Bleistift, Bleistifte, 铅笔 支
notebook, notebooks, das Notizbuch, Notizbücher, 笔记本 本
camera, cameras, die Kamera, Kameras, 照相机 台
ticket, tickets, das Ticket, Tickets, 票 张
passport, passports, der Pass, Pässe, 护照 本
suitcase, suitcases, der Koffer, Koffer, 行李箱 个
backpack, backpacks, der Rucksack, Rucksäcke, 背包 个
watch, watches, die Armbanduhr, Armbanduhren, 手表 块
photo, photos, das Foto, Fotos, 照片 张
map, maps, die Landkarte, Landkarten, 地图 张
dictionary, dictionaries, das Wörterbuch, Wörterbücher, 词典 本
basket, baskets, der Korb, Körbe, 篮子 个
doll, dolls, die Puppe, Puppen, 娃娃 个
ball, balls, der Ball, Bälle, 球 个
guitar, guitars, die Gitarre, Gitarren, 吉他 把
violin, violins, die Geige, Geigen, 小提琴 把
""")  # fmt: skip
DISHES = nouns("household", """
cup, cups, die Tasse, Tassen, 杯子 个
plate, plates, der Teller, Teller, 盘子 个
knife, knives, das Messer, Messer, 刀 把
spoon, spoons, der Löffel, Löffel, 勺子 把
fork, forks, die Gabel, Gabeln, 叉子 把
bottle, bottles, die Flasche, Flaschen, 瓶子 个
vase, vases, die Vase, Vasen, 花瓶 个
candle, candles, die Kerze, Kerzen, 蜡烛 根
towel, towels, das Handtuch, Handtücher, 毛巾 条
blanket, blankets, die Decke, Decken, 毯子 条
""")  # fmt: skip
FURNITURE = nouns("furniture", """
table, tables, der Tisch, Tische, 桌子 张
chair, chairs, der Stuhl, Stühle, 椅子 把
bed, beds, das Bett, Betten, 床 张
sofa, sofas, das Sofa, Sofas, 沙发 张
cupboard, cupboards, der Schrank, Schränke, 柜子 个
shelf, shelves, das Regal, Regale, 书架 个
carpet, carpets, der Teppich, Teppiche, 地毯 块
mirror, mirrors, der Spiegel, Spiegel, 镜子 面
desk, desks, der Schreibtisch, Schreibtische, 书桌 张
""")  # fmt: skip
MACHINES = nouns("machine", """
computer, computers, der Computer, Computer, 电脑 台
radio, radios, das Radio, Radios, 收音机 台
television, televisions, der Fernseher, Fernseher, 电视机 台
fridge, fridges, der Kühlschrank, Kühlschränke, 冰箱 台
washing machine, washing machines, die Waschmaschine, Waschmaschinen, 洗衣机 台
printer, printers, der Drucker, Drucker, 打印机 台
lamp, lamps, die Lampe, Lampen, 灯 盏
""")  # fmt: skip
CLOTHES = nouns("clothes", """
shirt, shirts, das Hemd, Hemden, 衬衫 件
coat, coats, der Mantel, Mäntel, 大衣 件
jacket, jackets, die Jacke, Jacken, 夹克 件
dress, dresses, das Kleid, Kleider, 连衣裙 条
skirt, skirts, der Rock, Röcke, 裙子 条
sweater, sweaters, der Pullover, Pullover, 毛衣 件
suit, suits, der Anzug, Anzüge, 西装 套
uniform, uniforms, die Uniform, Uniformen, 制服 套
""")  # fmt: skip
HEADWEAR = nouns("clothes", """
hat, hats, der Hut, Hüte, 帽子 顶
scarf, scarves, der Schal, Schals, 围巾 条
tie, ties, die Krawatte, Krawatten, 领带 条
ring, rings, der Ring, Ringe, 戒指 枚
""")  # fmt: skip
VEHICLES = nouns("vehicle", """
car, cars, das Auto, Autos, 汽车 辆
bicycle, bicycles, das Fahrrad, Fahrräder, 自行车 辆
motorcycle, motorcycles, das Motorrad, Motorräder, 摩托车 辆
truck, trucks, der Lastwagen, Lastwagen, 卡车 辆
boat, boats, das Boot, Boote, 小船 条
""")  # fmt: skip
TRANSPORT = nouns("transport", """
bus, buses, der Bus, Busse, 公交车 辆
train, trains, der Zug, Züge, 火车 列
taxi, taxis, das Taxi, Taxis, 出租车 辆
tram, trams, die Straßenbahn, Straßenbahnen, 电车 辆
""")  # fmt: skip
BUILDINGS = nouns("building", """
house, houses, das Haus, Häuser, 房子 栋
bridge, bridges, die Brücke, Brücken, 桥 座
tower, towers, der Turm, Türme, 塔 座
castle, castles, das Schloss, Schlösser, 城堡 座
street, streets, die Straße, Straßen, 街 条
village, villages, das Dorf, Dörfer, 村子 个
apartment, apartments, die Wohnung, Wohnungen, 公寓 套
""")  # fmt: skip
FIXTURES = nouns("fixture", """
window, windows, das Fenster, Fenster, 窗户 扇
door, doors, die Tür, Türen, 门 扇
""")  # fmt: skip
SNACKS = nouns("food", """
apple, apples, der Apfel, Äpfel, 苹果 个
banana, bananas, die Banane, Bananen, 香蕉 根
orange, oranges, die Orange, Orangen, 橙子 个
pear, pears, die Birne, Birnen, 梨 个
egg, eggs, das Ei, Eier, 鸡蛋 个
tomato, tomatoes, die Tomate, Tomaten, 西红柿 个
potato, potatoes, die Kartoffel, Kartoffeln, 土豆 个
sandwich, sandwiches, das Sandwich, Sandwiches, 三明治 个
sausage, sausages, die Wurst, Würste, 香肠 根
carrot, carrots, die Karotte, Karotten, 胡萝卜 根
strawberry, strawberries, die Erdbeere, Erdbeeren, 草莓 颗
cookie, cookies, der Keks, Kekse, 饼干 块
cake, cakes, der Kuchen, Kuchen, 蛋糕 个
pizza, pizzas, die Pizza, Pizzas, 披萨 份
salad, salads, der Salat, Salate, 沙拉 份
soup, soups, die Suppe, Suppen, 汤 碗
""")  # fmt: skip
# Bare in all three languages: Brot kaufen, 买面包.
PROVISIONS = nouns("provision", """
bread, -, das Brot, Brot, 面包 块
rice, -, der Reis, Reis, 米饭 碗
cheese, -, der Käse, Käse, 奶酪 块
meat, -, das Fleisch, Fleisch, 肉 块
fish, -, der Fisch, Fisch, 鱼 条
fruit, -, das Obst, Obst, 水果 份
chocolate, -, die Schokolade, Schokolade, 巧克力 块
ham, -, der Schinken, Schinken, 火腿 块
honey, -, der Honig, Honig, 蜂蜜 瓶
yogurt, -, der Joghurt, Joghurt, 酸奶 杯
""")  # fmt: skip
DRINKS = nouns("drink", """
coffee, -, der Kaffee, Kaffee, 咖啡 杯
tea, -, der Tee, Tee, 茶 杯
milk, -, die Milch, Milch, 牛奶 杯
water, -, das Wasser, Wasser, 水 杯
juice, -, der Saft, Saft, 果汁 杯
lemonade, -, die Limonade, Limonade, 柠檬水 杯
cocoa, -, der Kakao, Kakao, 可可 杯
""")  # fmt: skip
CULTURE = nouns("culture", """
film, films, der Film, Filme, 电影 部
song, songs, das Lied, Lieder, 歌 首
picture, pictures, das Bild, Bilder, 画 幅
concert, concerts, das Konzert, Konzerte, 音乐会 场
exhibition, exhibitions, die Ausstellung, Ausstellungen, 展览 个
""")  # fmt: skip
PLANTS = nouns("plant", """
flower, flowers, die Blume, Blumen, 花 朵
tree, trees, der Baum, Bäume, 树 棵
rose, roses, die Rose, Rosen, 玫瑰 朵
""")  # fmt: skip
TASKS = nouns("task", """
question, questions, die Frage, Fragen, 问题 个
word, words, das Wort, Wörter, 词 个
sentence, sentences, der Satz, Sätze, 句子 个
text, texts, der Text, Texte, 课文 篇
exercise, exercises, die Übung, Übungen, 练习 个
bill, bills, die Rechnung, Rechnungen, 账单 张
contract, contracts, der Vertrag, Verträge, 合同 份
present, presents, das Geschenk, Geschenke, 礼物 件
test, tests, der Test, Tests, 测验 次
""")  # fmt: skip

ALL: dict[str, Noun] = {
    name: noun
    for table in (
        READING, MAIL, THINGS, DISHES, FURNITURE, MACHINES, CLOTHES, HEADWEAR, VEHICLES, TRANSPORT, BUILDINGS,
        FIXTURES, SNACKS, PROVISIONS, DRINKS, CULTURE, PLANTS, TASKS,
    )
    for name, noun in table.items()
}  # fmt: skip
