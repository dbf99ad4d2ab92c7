"""The complete text table of each language: the texts of the page and those of the charts."""

from dl3.report.charts import charts
from dl3.report.chinese import CHINESE
from dl3.report.chinese_campaign import CHINESE_CAMPAIGN
from dl3.report.english import ENGLISH
from dl3.report.english_campaign import ENGLISH_CAMPAIGN
from dl3.report.explain.chinese import EXPLAIN_CHINESE
from dl3.report.explain.english import EXPLAIN_ENGLISH
from dl3.report.explain.verdicts import CHINESE as PLACES_CHINESE
from dl3.report.explain.verdicts import ENGLISH as PLACES_ENGLISH
from dl3.report.lab_words import CHINESE as LAB_CHINESE
from dl3.report.lab_words import ENGLISH as LAB_ENGLISH
from dl3.report.lacks import CHINESE as LACKS_CHINESE
from dl3.report.lacks import ENGLISH as LACKS_ENGLISH
from dl3.report.quoted import CHINESE as QUOTED_CHINESE
from dl3.report.quoted import ENGLISH as QUOTED_ENGLISH
from dl3.report.shaped import CHINESE as SHAPED_CHINESE
from dl3.report.shaped import ENGLISH as SHAPED_ENGLISH
from dl3.report.stalls import CHINESE as STALLS_CHINESE
from dl3.report.stalls import ENGLISH as STALLS_ENGLISH
from dl3.report.words import Language, Words

TABLES = {
    Language.EN: ENGLISH
    | ENGLISH_CAMPAIGN
    | EXPLAIN_ENGLISH
    | PLACES_ENGLISH
    | QUOTED_ENGLISH
    | STALLS_ENGLISH
    | SHAPED_ENGLISH
    | LACKS_ENGLISH
    | LAB_ENGLISH,
    Language.ZH: CHINESE
    | CHINESE_CAMPAIGN
    | EXPLAIN_CHINESE
    | PLACES_CHINESE
    | QUOTED_CHINESE
    | STALLS_CHINESE
    | SHAPED_CHINESE
    | LACKS_CHINESE
    | LAB_CHINESE,
}


def words_in(language: Language) -> Words:
    """All words of a language."""
    table = dict(TABLES[language])
    for chart in charts():
        table.update(chart.words[language])
    return Words(language, table)
