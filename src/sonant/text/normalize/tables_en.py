"""Tables of the English normaliser: what is written, and what is said for it."""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """The words of a line: a table that reads like the text it matches."""
    return frozenset(words.split())


# written (lower case, with its dot) → (looked up, shown). The lexicon knows a few of them with the dot.
ABBREVIATIONS = {
    "mr.": ("Mr.", "mister"), "mrs.": ("Mrs.", "missus"), "ms.": ("Ms.", "miz"), "dr.": ("Dr.", "doctor"),
    "esq.": ("Esq.", "esquire"), "etc.": ("etc.", "et cetera"), "jr.": ("junior", ""), "sr.": ("senior", ""),
    "prof.": ("professor", ""), "rev.": ("reverend", ""), "gen.": ("general", ""), "col.": ("colonel", ""),
    "capt.": ("captain", ""), "lt.": ("lieutenant", ""), "sgt.": ("sergeant", ""), "cpl.": ("corporal", ""),
    "maj.": ("major", ""), "cmdr.": ("commander", ""), "gov.": ("governor", ""), "sen.": ("senator", ""),
    "rep.": ("representative", ""), "pres.": ("president", ""), "hon.": ("honorable", ""),
    "messrs.": ("messrs", ""), "mt.": ("mount", ""), "ft.": ("fort", ""), "ave.": ("avenue", ""),
    "blvd.": ("boulevard", ""), "rd.": ("road", ""), "hwy.": ("highway", ""), "apt.": ("apartment", ""),
    "dept.": ("department", ""), "univ.": ("university", ""), "inc.": ("inc", ""),
    "ltd.": ("limited", ""), "corp.": ("corp", ""), "co.": ("company", ""), "bros.": ("brothers", ""),
    "vs.": ("versus", ""), "approx.": ("approximately", ""), "est.": ("established", ""), "vol.": ("volume", ""),
    "fig.": ("figure", ""), "figs.": ("figures", ""), "ch.": ("chapter", ""), "pp.": ("pages", ""),
    "sec.": ("section", ""), "p.": ("page", ""), "pg.": ("page", ""), "eq.": ("equation", ""),
    "para.": ("paragraph", ""),
    "art.": ("article", ""), "ed.": ("edition", ""), "eds.": ("editors", ""), "misc.": ("miscellaneous", ""),
    "min.": ("minimum", ""), "max.": ("maximum", ""), "jan.": ("January", ""), "feb.": ("February", ""),
    "mar.": ("March", ""), "apr.": ("April", ""), "jun.": ("June", ""), "jul.": ("July", ""),
    "aug.": ("August", ""), "sep.": ("September", ""), "sept.": ("September", ""), "oct.": ("October", ""),
    "nov.": ("November", ""), "dec.": ("December", ""), "mon.": ("Monday", ""), "tue.": ("Tuesday", ""),
    "tues.": ("Tuesday", ""), "wed.": ("Wednesday", ""), "thu.": ("Thursday", ""), "thurs.": ("Thursday", ""),
    "fri.": ("Friday", ""), "c.": ("circa", ""), "ext.": ("extension", ""),
    "viz.": ("namely", ""), "al.": ("al", ""), "cf.": ("compare", ""), "ca.": ("circa", ""),
}  # fmt: skip
# These need a capital letter (or a number) around them: "Rep. Smith", but "one more rep."
NEED_CAPITAL = word_set(
    "gen. col. rep. sen. hon. ft. mt. maj. gov. pres. rev. rd. inc. co. corp. est. mar. ed. min. max. ca."
)
# These need a capital of their own: "in Jan.", but "a jan."
OWN_CAPITAL = word_set("jan. feb. apr. jun. jul. aug. sep. oct. nov. dec. mon. tue. wed. thu. fri.")
# These name the number behind them.
NUMBER_LABELS = word_set("ext. pg. fig. figs. vol. ch. sec. p. pp. eq. para. art.")
# Read the same way without the dot.
WITHOUT_DOT = word_set("mr mrs ms dr jr sr prof vs messrs etc")
# Dotted words after which a sentence goes on.
NOT_SENTENCE_END = frozenset(ABBREVIATIONS) - {"etc.", "inc.", "co.", "ltd.", "corp.", "jr.", "sr.", "al.", "ed."} | {
    "st.", "no.", "nos.", "e.g.", "i.e.", "u.s.", "p.", "v.", "a.k.a.", "c.", 
}  # fmt: skip

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
MONTH_NAMES = frozenset(MONTHS) | word_set("Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec")
STATES = word_set(
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK OR "
    "PA RI SC SD TN TX UT VT VA WA WV WI WY DC"
)

# symbol → (one, many, one hundredth, hundredths)
CURRENCIES = {
    "$": ("dollar", "dollars", "cent", "cents"), "US$": ("U S dollar", "U S dollars", "cent", "cents"),
    "£": ("pound", "pounds", "penny", "pence"), "€": ("euro", "euros", "cent", "cents"),
    "¥": ("yen", "yen", "sen", "sen"), "₹": ("rupee", "rupees", "paisa", "paise"),
    "₩": ("won", "won", "jeon", "jeon"), "¢": ("cent", "cents", "", ""), "₿": ("bitcoin", "bitcoins", "", ""),
    "C$": ("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "CA$": ("Canadian dollar", "Canadian dollars", "cent", "cents"),
    "A$": ("Australian dollar", "Australian dollars", "cent", "cents"),
    "AU$": ("Australian dollar", "Australian dollars", "cent", "cents"),
    "NZ$": ("New Zealand dollar", "New Zealand dollars", "cent", "cents"),
    "HK$": ("Hong Kong dollar", "Hong Kong dollars", "cent", "cents"),
    "S$": ("Singapore dollar", "Singapore dollars", "cent", "cents"), "R$": ("real", "reals", "centavo", "centavos"),
    "₽": ("rouble", "roubles", "", ""), "₺": ("lira", "lira", "", ""), "₫": ("dong", "dong", "", ""),
    "₪": ("shekel", "shekels", "", ""), "₦": ("naira", "naira", "", ""), "฿": ("baht", "baht", "", ""),
    "₴": ("hryvnia", "hryvnias", "", ""), "₱": ("peso", "pesos", "", ""),
}  # fmt: skip
# code → (one, many)
CURRENCY_CODES = {
    "USD": ("U S dollar", "U S dollars"), "EUR": ("euro", "euros"), "GBP": ("pound", "pounds"), "JPY": ("yen", "yen"),
    "Rs": ("rupee", "rupees"),
    "CHF": ("Swiss franc", "Swiss francs"), "INR": ("rupee", "rupees"), "CNY": ("yuan", "yuan"),
    "CAD": ("Canadian dollar", "Canadian dollars"), "AUD": ("Australian dollar", "Australian dollars"),
    "NZD": ("New Zealand dollar", "New Zealand dollars"), "KRW": ("won", "won"), "BTC": ("bitcoin", "bitcoins"),
    "SEK": ("Swedish krona", "Swedish kronor"), "NOK": ("Norwegian krone", "Norwegian kroner"),
    "DKK": ("Danish krone", "Danish kroner"), "MXN": ("Mexican peso", "Mexican pesos"),
}  # fmt: skip
SIGNS = {
    "-": "minus", "–": "minus", "+": "plus", "±": "plus or minus", "~": "about", "≈": "about", "<": "less than",
    ">": "greater than", "≤": "less than or equal to", "≥": "greater than or equal to", "√": "square root of",
}  # fmt: skip
SCALES = {
    "k": "thousand", "K": "thousand", "m": "million", "M": "million", "mn": "million", "mm": "million",
    "b": "billion", "B": "billion", "bn": "billion", "t": "trillion", "T": "trillion", "tn": "trillion",
}  # fmt: skip
SCALE_WORDS = word_set("hundred thousand million billion trillion")

# written → (one, many)
UNITS = {
    "%": ("percent", "percent"), "‰": ("per mille", "per mille"),
    "km": ("kilometer", "kilometers"), "m": ("meter", "meters"), "cm": ("centimeter", "centimeters"),
    "mm": ("millimeter", "millimeters"), "nm": ("nanometer", "nanometers"), "μm": ("micrometer", "micrometers"),
    "mi": ("mile", "miles"), "ft": ("foot", "feet"), "in": ("inch", "inches"), "yd": ("yard", "yards"),
    "kg": ("kilogram", "kilograms"), "g": ("gram", "grams"), "mg": ("milligram", "milligrams"),
    "lb": ("pound", "pounds"), "lbs": ("pound", "pounds"), "oz": ("ounce", "ounces"),
    "l": ("liter", "liters"), "L": ("liter", "liters"), "ml": ("milliliter", "milliliters"),
    "mL": ("milliliter", "milliliters"), "gal": ("gallon", "gallons"), "tsp": ("teaspoon", "teaspoons"),
    "tbsp": ("tablespoon", "tablespoons"), "pt": ("pint", "pints"), "qt": ("quart", "quarts"),
    "s": ("second", "seconds"), "sec": ("second", "seconds"), "secs": ("second", "seconds"),
    "ms": ("millisecond", "milliseconds"), "ns": ("nanosecond", "nanoseconds"), "min": ("minute", "minutes"),
    "mins": ("minute", "minutes"), "h": ("hour", "hours"), "hr": ("hour", "hours"), "hrs": ("hour", "hours"),
    "yr": ("year", "years"), "yrs": ("year", "years"), "mph": ("mile per hour", "miles per hour"),
    "kph": ("kilometer per hour", "kilometers per hour"), "km/h": ("kilometer per hour", "kilometers per hour"),
    "m/s": ("meter per second", "meters per second"), "fps": ("frame per second", "frames per second"),
    "rpm": ("revolution per minute", "revolutions per minute"), "dpi": ("dot per inch", "dots per inch"),
    "°": ("degree", "degrees"), "°C": ("degree Celsius", "degrees Celsius"),
    "°F": ("degree Fahrenheit", "degrees Fahrenheit"), "°K": ("kelvin", "kelvin"),
    "Hz": ("hertz", "hertz"), "kHz": ("kilohertz", "kilohertz"), "MHz": ("megahertz", "megahertz"),
    "GHz": ("gigahertz", "gigahertz"), "kB": ("kilobyte", "kilobytes"), "KB": ("kilobyte", "kilobytes"),
    "MB": ("megabyte", "megabytes"), "GB": ("gigabyte", "gigabytes"), "TB": ("terabyte", "terabytes"),
    "Mbps": ("megabit per second", "megabits per second"), "Gbps": ("gigabit per second", "gigabits per second"),
    "W": ("watt", "watts"), "kW": ("kilowatt", "kilowatts"), "MW": ("megawatt", "megawatts"),
    "kWh": ("kilowatt hour", "kilowatt hours"), "V": ("volt", "volts"), "mV": ("millivolt", "millivolts"),
    "mA": ("milliamp", "milliamps"), "mAh": ("milliamp hour", "milliamp hours"), "dB": ("decibel", "decibels"),
    "px": ("pixel", "pixels"), "sq": ("square", "square"), "st": ("stone", "stone"),
    "cu": ("cubic", "cubic"), "ha": ("hectare", "hectares"),
    "m²": ("square meter", "square meters"), "km²": ("square kilometer", "square kilometers"),
    "m2": ("square meter", "square meters"), "km2": ("square kilometer", "square kilometers"),
    "m³": ("cubic meter", "cubic meters"), "cm²": ("square centimeter", "square centimeters"),
    "cm³": ("cubic centimeter", "cubic centimeters"), "ft²": ("square foot", "square feet"),
    "kcal": ("kilocalorie", "kilocalories"), "cal": ("calorie", "calories"), "x": ("times", "times"),
    "hp": ("horsepower", "horsepower"), "¢": ("cent", "cents"), "€": ("euro", "euros"), "£": ("pound", "pounds"),
    "m/s²": ("meter per second squared", "meters per second squared"), "bpm": ("beat per minute", "beats per minute"),
    "m/s2": ("meter per second squared", "meters per second squared"), "K": ("kelvin", "kelvin"),
    "p": ("p", "p"),
    "°N": ("degree north", "degrees north"), "°S": ("degree south", "degrees south"),
    "°E": ("degree east", "degrees east"), "°W": ("degree west", "degrees west"), "Pa": ("pascal", "pascals"),
    "hPa": ("hectopascal", "hectopascals"), "kPa": ("kilopascal", "kilopascals"), "psi": ("P S I", "P S I"),
    "kJ": ("kilojoule", "kilojoules"), "MJ": ("megajoule", "megajoules"), "Wh": ("watt hour", "watt hours"),
    "MWh": ("megawatt hour", "megawatt hours"), "GW": ("gigawatt", "gigawatts"), "kbps": ("kilobit per second",
    "kilobits per second"), "KiB": ("kibibyte", "kibibytes"), "MiB": ("mebibyte", "mebibytes"),
    "GiB": ("gibibyte", "gibibytes"), "μs": ("microsecond", "microseconds"), "μg": ("microgram", "micrograms"),
    "mcg": ("microgram", "micrograms"), "mol": ("mole", "moles"), "Ω": ("ohm", "ohms"), "kΩ": ("kilohm", "kilohms"),
    "day": ("day", "days"), "wk": ("week", "weeks"), "mo": ("month", "months"),
}  # fmt: skip
# Written apart from the number, these are more often something else.
ONLY_ATTACHED = frozenset(("s", "x", "in", "V", "W", "L", "pt", "cal", "m2", "m", "p"))
# Behind a measure these are no noun that it describes.
AFTER_A_MEASURE = word_set(
    "of in from to and or away per each at for on is was off more less a an the than then as but with by long wide tall"
)
# The number behind these is a name.
NAMED_BY_NUMBER = word_set(
    "boeing airbus flight route highway interstate room suite apartment apt bus box unit model channel gate number"
)
STREETS = word_set(
    "street st avenue ave road rd boulevard blvd drive dr lane ln court ct place pl way square sq terrace parkway pkwy"
)

# Written next to nothing else, or between words.
SYMBOLS = {
    "&": "and", "%": "percent", "+": "plus", "=": "equals", "@": "at", "×": "times", "÷": "divided by",
    "±": "plus or minus", "°": "degrees", "§": "section", "²": "squared", "³": "cubed",
    "≈": "approximately", "≤": "less than or equal to", "≠": "not equal to", "∞": "infinity", "√": "square root of",
    "→": "to", "∑": "sum", "∫": "integral", "∂": "partial", "∆": "delta", "∈": "in", "∪": "union", "¶": "paragraph",
    "≥": "greater than or equal to", "<": "", ">": "", "$": "dollars", "€": "euros", "£": "pounds", "©": "copyright",
}  # fmt: skip
# Only inside an address, where every character counts.
ADDRESS_SYMBOLS = {
    "@": "at", ".": "dot", "/": "slash", "-": "dash", "_": "underscore", ":": "colon", "?": "question mark",
    "=": "equals", "&": "and", "#": "hash", "+": "plus", "%": "percent", "~": "tilde",
    "\\": "backslash",
}  # fmt: skip
# How the ending of a file name is said; "" is letter by letter.
EXTENSIONS = {
    **dict.fromkeys(word_set(
        "pdf py md js ts tsx jsx rs cpp cc hpp rb pl php sh csv tsv xls ppt xml html htm css mp3 mp4 png gz xz rtf svg "
        "exe dll db sql yml ini cfg ogg aac m4a pptx xlsx kt cs apk"
    ), ""),
    "txt": "text", "jpg": "jay peg", "jpeg": "jay peg", "gif": "gif", "zip": "zip", "tar": "tar", "json": "jason",
    "yaml": "yaml", "toml": "toml", "doc": "doc", "docx": "doc x", "wav": "wave", "bat": "bat", "log": "log",
    "lock": "lock", "conf": "conf", "env": "env", "bak": "back", "bin": "bin", "flac": "flack", "tiff": "tiff",
    "java": "java", "opus": "opus", "swift": "swift", "lua": "lua", "vue": "view", "iso": "iso", "app": "app",
}  # fmt: skip
# Written with a slash or without a dot.
SHORTHANDS = {
    "w/o": "without", "w/": "with", "c/o": "care of", "b/c": "because", "w/in": "within", "a/c": "air conditioning",
}  # fmt: skip
DAY_NAMES = {"Sat": ("Saturday", ""), "Sun": ("Sunday", "")}
DOMAINS = word_set(
    "com org net edu gov mil int io ai dev app info biz co uk us eu de fr ca au tv me xyz tech fm ly gg so sh"
)

NUMBERED = word_set(
    "war chapter part act scene book volume type phase class title article section appendix bowl mark level stage "
    "grade world figure table item unit group"
)
REGNAL = word_set(
    "henry louis george edward elizabeth charles james william richard john paul pius benedict francis leo gregory "
    "napoleon catherine mary philip ferdinand alexander nicholas peter frederick ivan clement innocent urban "
    "boniface harald christian gustav leopold umberto victor ramses rameses ptolemy cleopatra xerxes darius"
)
# An apostrophe that begins one of these belongs to the word.
CLIPPED = word_set("tis twas em til bout round cause twere twill tisn neath gainst cept fraid nother bye kay sup ere")
