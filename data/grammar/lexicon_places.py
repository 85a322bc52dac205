"""Places with their prepositions, cities, countries and ways of travelling."""

from __future__ import annotations

from . import german
from .lexicon import Noun, Place, adverbs, nouns, rows

# noun | English preposition | German where | German where to | Chinese suffix
_TABLE = """
kitchen, kitchens, die Küche, Küchen, 厨房 间 | in | in | in | 里
living room, living rooms, das Wohnzimmer, Wohnzimmer, 客厅 间 | in | in | in | 里
bedroom, bedrooms, das Schlafzimmer, Schlafzimmer, 卧室 间 | in | in | in | 里
bathroom, bathrooms, das Badezimmer, Badezimmer, 浴室 间 | in | in | in | 里
garden, gardens, der Garten, Gärten, 花园 座 | in | in | in | 里
balcony, balconies, der Balkon, Balkone, 阳台 个 | on | auf | auf | 上
park, parks, der Park, Parks, 公园 座 | in | in | in |
café, cafés, das Café, Cafés, 咖啡馆 家 | in | in | in |
library, libraries, die Bibliothek, Bibliotheken, 图书馆 座 | in | in | in |
beach, beaches, der Strand, Strände, 海滩 片 | on | an | an | 上
lake, lakes, der See, Seen, 湖 个 | by | an | an | 边
forest, forests, der Wald, Wälder, 森林 片 | in | in | in | 里
supermarket, supermarkets, der Supermarkt, Supermärkte, 超市 家 | in | in | zu |
market, markets, der Markt, Märkte, 市场 个 | at | auf | auf |
bakery, bakeries, die Bäckerei, Bäckereien, 面包店 家 | in | in | zu |
department store, department stores, das Kaufhaus, Kaufhäuser, 百货商店 家 | in | in | in |
bookstore, bookstores, die Buchhandlung, Buchhandlungen, 书店 家 | in | in | zu |
office, offices, das Büro, Büros, 办公室 间 | in | in | in |
factory, factories, die Fabrik, Fabriken, 工厂 家 | in | in | in |
hospital, hospitals, das Krankenhaus, Krankenhäuser, 医院 家 | in | in | in |
school, schools, die Schule, Schulen, 学校 所 | at | in | in |
university, universities, die Universität, Universitäten, 大学 所 | at | an | an |
hotel, hotels, das Hotel, Hotels, 酒店 家 | in | in | in |
restaurant, restaurants, das Restaurant, Restaurants, 餐厅 家 | in | in | in |
bank, banks, die Bank, Banken, 银行 家 | at | bei | zu |
post office, post offices, das Postamt, Postämter, 邮局 家 | at | in | zu |
airport, airports, der Flughafen, Flughäfen, 机场 座 | at | an | zu |
station, stations, der Bahnhof, Bahnhöfe, 火车站 座 | at | an | zu |
bus stop, bus stops, die Bushaltestelle, Bushaltestellen, 公交车站 个 | at | an | zu |
museum, museums, das Museum, Museen, 博物馆 座 | in | in | in |
theater, theaters, das Theater, Theater, 剧院 座 | in | in | in |
cinema, cinemas, das Kino, Kinos, 电影院 家 | in | in | in |
zoo, zoos, der Zoo, Zoos, 动物园 座 | in | in | in |
swimming pool, swimming pools, das Schwimmbad, Schwimmbäder, 游泳池 个 | in | in | in | 里
stadium, stadiums, das Stadion, Stadien, 体育场 座 | in | in | in |
church, churches, die Kirche, Kirchen, 教堂 座 | in | in | in |
town hall, town halls, das Rathaus, Rathäuser, 市政厅 座 | in | in | zu |
pharmacy, pharmacies, die Apotheke, Apotheken, 药店 家 | in | in | zu |
garage, garages, die Garage, Garagen, 车库 个 | in | in | in | 里
sports field, sports fields, der Sportplatz, Sportplätze, 操场 个 | on | auf | auf | 上
"""


def _place(line: str) -> Place:
    columns, en, de, de_to, suffix = (part.strip() for part in line.split("|"))
    noun: Noun = next(iter(nouns("place", columns).values()))
    dative = german.contracted(de, f"{german.DEFINITE[noun.gender]['dat']} {noun.de}")
    case = "dat" if de_to == "zu" else "acc"
    target = german.contracted(de_to, f"{german.DEFINITE[noun.gender][case]} {noun.de}")
    return Place(
        noun,
        f"{en} the {noun.en}",
        f"to the {noun.en}",
        dative,
        target,
        "在" + noun.zh + suffix,
        noun.zh + suffix * (suffix == "边"),
    )


PLACES = {place.noun.en: place for place in map(_place, _TABLE.strip().splitlines())}

# Which places suit a deed; a verb names one of these groups.
PLACE_GROUPS = {
    "kitchen": "kitchen",
    "home": "kitchen; living room; bedroom; garden; balcony",
    "sleep": "bedroom; living room; balcony; hotel",
    "leisure": "park; café; library; garden; beach; lake; living room; balcony",
    "culture": "theater; museum; park; church; university; town hall; school",
    "outside": "park; garden; beach; lake; forest",
    "shop": "supermarket; market; department store",
    "grocery": "supermarket; market",
    "bakery": "bakery; supermarket; market",
    "books": "bookstore; department store",
    "eat": "kitchen; restaurant; café; garden; park; balcony; hotel",
    "order": "restaurant; café; hotel",
    "work": "office; factory; hospital; school; university; hotel; restaurant; bank; post office; airport; museum; "
    "library; pharmacy; supermarket; bakery; theater; zoo; town hall",
    "wait": "station; bus stop; airport; town hall; hospital; café; hotel; museum; cinema; park",
    "stop": "station; bus stop; airport",
    "garage": "garage; garden",
    "office": "office; library; school; university",
    "study": "library; school; university; café",
    "sport": "park; stadium; sports field; beach",
    "music": "theater; church; living room; park; school",
    "dance": "park; theater; living room; hotel",
    "water": "lake; swimming pool",
    "meet": "park; café; restaurant; station; library; theater; cinema; museum; airport; university; market",
    "anywhere": "park; café; library; supermarket; office; station; museum; hotel; restaurant; airport; school; "
    "university; stadium; department store; church; garden; beach",
    "garden": "garden; park",
    "cinema": "cinema; living room; school; hotel",
    "go": "park; café; library; beach; lake; forest; supermarket; market; bakery; department store; bookstore; "
    "office; hospital; school; university; hotel; restaurant; bank; post office; airport; station; museum; theater; "
    "cinema; zoo; swimming pool; stadium; church; town hall; pharmacy; sports field",
    "town": "park; café; library; supermarket; bakery; department store; bookstore; hospital; hotel; "
    "restaurant; bank; post office; station; bus stop; museum; theater; cinema; swimming pool; church; pharmacy; town hall",
}


def group(name: str) -> list[Place]:
    return [PLACES[place] for place in PLACE_GROUPS.get(name, name).split("; ")]


# Too far for a bus or a train.
OVERSEAS = {"Beijing", "Shanghai", "Tokyo", "New York", "China", "Japan", "Canada", "India", "Brazil"}
CITIES = list(rows("""
Berlin, Berlin, 柏林
Paris, Paris, 巴黎
London, London, 伦敦
Rome, Rom, 罗马
Vienna, Wien, 维也纳
Munich, München, 慕尼黑
Hamburg, Hamburg, 汉堡
Beijing, Peking, 北京
Shanghai, Shanghai, 上海
Tokyo, Tokio, 东京
Madrid, Madrid, 马德里
Moscow, Moskau, 莫斯科
Zurich, Zürich, 苏黎世
Cologne, Köln, 科隆
Prague, Prag, 布拉格
New York, New York, 纽约
"""))  # fmt: skip
COUNTRIES = list(rows("""
Germany, Deutschland, 德国
China, China, 中国
France, Frankreich, 法国
England, England, 英国
Italy, Italien, 意大利
Spain, Spanien, 西班牙
Japan, Japan, 日本
Austria, Österreich, 奥地利
Canada, Kanada, 加拿大
Poland, Polen, 波兰
India, Indien, 印度
Brazil, Brasilien, 巴西
"""))  # fmt: skip
LANGUAGES = list(rows("""
German, Deutsch, 德语
English, Englisch, 英语
Chinese, Chinesisch, 汉语
French, Französisch, 法语
Spanish, Spanisch, 西班牙语
Italian, Italienisch, 意大利语
Russian, Russisch, 俄语
Japanese, Japanisch, 日语
Arabic, Arabisch, 阿拉伯语
"""))  # fmt: skip

TRAVEL_BY = adverbs("""
by bus, mit dem Bus, 坐公交车
by taxi, mit dem Taxi, 坐出租车
by tram, mit der Straßenbahn, 坐电车
by car, mit dem Auto, 开车
by bicycle, mit dem Fahrrad, 骑自行车
""")  # fmt: skip
FAR_TRAVEL_BY = adverbs("""
by bus, mit dem Bus, 坐公交车
by train, mit dem Zug, 坐火车
by car, mit dem Auto, 开车
""")  # fmt: skip
# The country of a town, so that nobody moves from China to Beijing.
HOME = {
    "Berlin": "Germany", "Munich": "Germany", "Hamburg": "Germany", "Cologne": "Germany", "Paris": "France", "London": "England", "Rome": "Italy",
    "Vienna": "Austria", "Beijing": "China", "Shanghai": "China", "Tokyo": "Japan", "Madrid": "Spain",
}  # fmt: skip
