"""Texts for tools/record_latent_text_golden.py: by hand where rules have edges, at random for what stands together."""

from __future__ import annotations

import random
from collections.abc import Iterator

LANGUAGES = ("en", "fr", "de", "es", "pt")

WORDS = {
    "en": "the quick brown fox well-known don't Dr. Mr. St. e.g. i.e. U.S.A. said \"hello\" it's No. and/or "
    "he/she km/h reality (maybe) [note] naïve Lt Col. Lt. Sgt. Jan. Dec. vs. etc. approx. dept. w/o w/ "
    "e-mail twenty-one co-op sooo Nooooo yesss ahhh wowww Whyyy heyyy ending ends in",
    "fr": "le chat l’été où déjà « bonjour » M. Mme. etc. c.-à-d. n° aujourd'hui arc-en-ciel peut-être œuvre ça "
    "(donc) prix",
    "de": "der Hund größer Straße z.B. d.h. usw. Nr. Dr. „hallo“ Über-Ich 3. Oktober ist (vielleicht) [Notiz] "
    "E-Mail",
    "es": "el niño ¿dónde está? ¡hola! Sr. Sra. etc. n.º adiós señor-a (quizás) [nota] precio 1.er",
    "pt": "o coração não é só Sr. Sra. etc. n.º água-viva (talvez) [nota] preço R$",
}

# One line for every kind of thing that is read; each goes through all languages.
NORMALIZE = """
It costs $5.50 (about 5 euros) -- right?|$1,234.56|$1|$0.01|$0.99|-$5.|€0.5|£1.50|¥5|30¢|1¢|99$
$2 million, then €3bn|$3.2m
£5k|$ 5|R$ 250|R$1,5 mi|R$ 1 bi|R$ 40-60.|-R$ 12,50|250 €|42,00 €|4,59 €|0,01€|1 000 €|From 10 $20 bills.
0|7|007|42|999|1000|1234|1,234|1,234.56...|3.14|-12.00|1000000|2500000|2,500,000,|1002003004|999999999999
1000000000000|-4500
1900|1999|2024|2100|7,000-ton|20-year-old|10-15|3-5|8-10|10-5|22-22|1445-1450|2024-25|1999-1998|2.9%|50%|1.234
1.234,56|1.23
12.345.678|40 000 livres|1 200 000|1 234,56 kg|RR 123 456 789 GB|01 23 45 67 89|07 123|12 1234|1.er|3er|2.er
1st 2nd 3rd
Call 555-123-4567.|1-800-555-1234|555_123_4567|978-3-16-148410-0|90-60-90|2024-05-12|12-05-24|2024-13-45|1--2
-5-6-7|1-2-3
+442079460852|+33612345678|+16502349653|+491511234567|+34612345678|+351912345678|+9991234567|07596854413
02079460852|0301234567
0123456789|+44 20 7946 0958|ending in -4098.|It ended in A-12.|In 2019 2020 2021|A1 B2 C3
3:45 pm|3:45PM!|03:00.|12.30|03.00pm|14:30 Uhr|08:20|14h30|00h15|18H30|22.45!|10:30
12/05/2024|1/5.|16/01/1980|20/12/15|1/2|123/5|3. Oktober|2024-01-02
john.doe@example.com.|a_b@x.es|laurent+tag@gmail.com|max-mustermann@web.de|user@host|@home|a..b@x.io|é@b.com
foo@bar.com/x
https://www.example.com/a-b?c=1|www.kyutai.fr|http://sub.domain.co.uk|example.com.|abc123.io/v2|EXAMPLE.COM
it.Now|yes.No
kyutai.Fr|www.example.Com|ftp://example.com|example.html|hello.world|example..com|https://|café.de
Dr. Smith|Lt Col Vann|Lt. Col. Harris|Lt Vann|Sgt. Dec. Thu.|vs. U.K., etc.|approx. 5|w/o|w/ me|ed.|dec.
Mt. Fuji|Ft. Worth
sooo|Nooooo,|Hiii|Whyyy|Ewww|Ahhh!|Zzz|Mmm|WWW|yesss|loveee|hmmm
and/or, to/from|c/o|km/h|mg/kg|he/she/they|a/b|and/1|reality/the deity.|1500+20|C++.|A+B = C|a@b|x @, y
“Quoted” ‘single’ «guillemets» ‹angles› „low“|a‐b‑c‒d―e|a–b—c|wait… a…b|(hi) there|[music] {x} *y*|a;b:c|note:
a :b|:start
;; ,, ..|hello (world)|foo ; bar  :  baz|* bullet • point → arrow|😀 🎉 ☀️ 👩‍💻 🇫🇷|I ❤️ NY ♥|★★★★☆|★★½|☆☆|*67|x * 3
~10|~x|±2
20°C|1°C|21°|212 °F|45°Ceiling|n°5|N° 12|n.º 8|nº3|10n°|×÷≤≥≠≈√∞∑‰π|x² + y³ = 10⁻⁶|C₈H₁₈|¹³C|ΔH, α ω Ω
bǎohù İstanbul città
Fish &, chips &.|Press 1, then #.|In $.|it costs 5$.|He said, "go!"|It's the boys'|'Stop it.'|"Stop." 'x'"|''|"
co-op well-known mother-in-law|exam-\nple|soft­hyphen|- item|-- dash --|a - b|e-mail|x-ray|T-shirt's|1-on-1|24/7
9-to-5
tab\there|zero\u200bwidth|bell\u0007|\ufeffBOM|nbsp\u00a0here|\u2028line|Line one\\nLine two|   |naïve café élan
日本語 текст
"""

CHUNKS = [
    "Hello.", "Huh?", "hello there my friend", "Wait... what?! No.", "It is 3.14 or 1,000.50; really.",
    "\"Hi?\", she said.", "He said \"go home\"", "One two three four five,", "note: this -", "(in brackets)",
    "ünter uns: ßtraße", "a", "é", "U.S.A.", "Chapter 3. 14 people came. They left.",
    "Version 2.5.1 is out. See example.com.", "No… never. Yes; no: maybe, so.",
    "First line\nsecond line\r\nthird line.", "two  spaces   three    four.", "¿Dónde está? ¡Aquí! Sí.",
    "« Bonjour ! » dit-il.", "Ja, „genau“ – das ist’s.", "The end – almost —", "“Curly” quotes ‘inside’ text.",
    "A, b; c: d - e.", "x" * 30,
]  # fmt: skip


def normalize_lines() -> list[str]:
    """The lines by hand, with the escapes of their characters read."""
    parts = "|".join(NORMALIZE.strip().split("\n")).split("|")
    return [part.replace("\\n", "\n") for part in dict.fromkeys(parts)]


def chunk_texts(sentences: list[str]) -> Iterator[str]:
    """Short ones with edges, then paragraphs of many lengths."""
    yield from CHUNKS
    rng = random.Random(7)
    for size in (2, 3, 5, 8, 13, 21):
        for _ in range(6):
            yield " ".join(rng.sample(sentences, size))
    for _ in range(8):
        words = " ".join(rng.sample(sentences, 6)).replace(".", "").replace("?", "").replace("!", "").split()
        yield " ".join(word + rng.choice([""] * 6 + [",", ";", ":"]) for word in words)


def random_texts(language: str, seed: int, count: int) -> Iterator[str]:
    """Rows of words, numbers, amounts, times, addresses and signs as nobody would write them."""
    rng = random.Random(f"{language} {seed}")
    for _ in range(count):
        row = ""
        for number in range(rng.randint(1, 7)):
            row += (rng.choice([" "] * 9 + ["", "  ", "\u00a0"]) if number else "") + _item(rng, language)
        yield row + rng.choice([".", "", "!", "?", "…", '"', '."', "'"])


def _word(rng: random.Random, language: str) -> str:
    return rng.choice(WORDS[language].split())


def _number(rng: random.Random) -> str:
    def upto(last: int, first: int = 0) -> str:
        return str(rng.randint(first, last))

    grouped = f"{rng.randint(0, 10**7):,}"
    return rng.choice(
        [
            upto(99), upto(9999, 100), upto(10 ** rng.randint(5, 13)), grouped, grouped.replace(",", "."),
            f"{upto(9999)}.{upto(999)}", f"{upto(9999)},{rng.randint(0, 999):03d}",
            f"{grouped}.{rng.randint(0, 99):02d}",
            grouped.replace(",", ".") + f",{rng.randint(0, 99):02d}", "-" + upto(99999), "0" + upto(9999),
            f"{upto(2100, 1000)}-{upto(2100)}", f"{upto(200)}-{upto(200)}", f"{upto(999, 1)} {rng.randint(0, 999):03d}",
            upto(31, 1) + rng.choice(["st", "nd", "th", "°", "º", "ª", ".", "er"]),
            upto(9999, 1) + rng.choice(["k", "M", "bn", "x", "%", "°C", "km", "kg"]),
        ]
    )  # fmt: skip


def _item(rng: random.Random, language: str) -> str:
    word, other, number = _word(rng, language), _word(rng, language), _number(rng)
    day, month, year = rng.randint(1, 31), rng.randint(1, 12), rng.randint(1980, 2030)
    return rng.choice(
        [
            word, word, word, word, number, number, number, rng.choice("$€£¥¢") + number,
            number + rng.choice(["$", "€", " €", " £", "¢", "\u00a0€"]),
            f"{rng.choice(['$', '€', 'R$ '])}{number} "
            f"{rng.choice(['million', 'millones', 'milhões', 'mi', 'Millionen'])}",
            f"{rng.randint(0, 24)}{rng.choice(':.hH')}{rng.randint(0, 59):02d}{rng.choice(['', 'am', 'PM', ' Uhr'])}",
            rng.choice(
                [f"{day}/{month}/{year}", f"{month}/{day}", f"{year}-{month:02d}-{day:02d}", f"{day}.{month}.{year}"]
            ),
            f"{rng.randint(100, 999)}-{rng.randint(100, 999)}-{rng.randint(1000, 9999)}",
            f"+{rng.choice(['1', '33', '44', '49', '34', '351', '55', '999'])}{rng.randint(10**4, 10**10)}",
            f"0{rng.randint(10**8, 10**10)}", f"0{rng.randint(1, 9)} {rng.randint(10, 99)} {rng.randint(10, 99)}",
            rng.choice(["john.doe", "a_b", "x+tag"]) + "@" + rng.choice(["gmail.com", "web.de", "x.co.uk", "host"]),
            rng.choice(["https://", "", "www."]) + rng.choice(["example.com", "abc123.io", "it.Now", "x.html"]),
            rng.choice("×÷≤≥≠≈√∞∑‰±π™§†¿¡ªº^~_|<>#&%*=+@") + rng.choice(["", word, number]),
            rng.choice(
                ["😀", "❤️", "★★★☆", "★★½", "→", "•", "…", "—", "–", "°", "½", "α", "x²", "10⁻³", "CO₂", "\n", " * "]
            ),
            rng.choice("([{«“\"'‹") + word + rng.choice(")]}»”\"'›") + rng.choice(["", ",", "."]),
            word + rng.choice(["...", "!!!", "?!", ";", ":", " :", " ;", " ,", " .", "/", "…", "--", "-", "’s", '".']),
            rng.choice(
                [f"{word}-{other}", f"{word}/{other}", f"{word}@{other}", f"{word}={number}", f"{number}+{number}"]
            ),
        ]
    )  # fmt: skip
