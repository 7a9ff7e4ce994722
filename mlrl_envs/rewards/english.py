"""English function words, by the part they play in a sentence."""

__all__ = ["CONJUNCTIONS", "DETERMINERS", "FUNCTION_WORDS", "PREPOSITIONS", "VERBS_OF_BEING"]


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


DETERMINERS = _set("a an the my your his her its our their this that these those")
PREPOSITIONS = _set(
    "of in on at by for with from to into over under through across between among above below "
    "behind beyond without within against toward towards upon"
)
CONJUNCTIONS = _set("and but or nor so yet because although though while if when")
VERBS_OF_BEING = _set("is are was were be been being am has have had having")
_OTHERS = _set(
    "i you he she it we they me him them us who whom whose which what where how why there here "
    "do does did will would can could shall should may might must not no never always as than "
    "then every each all some any both many much more most such own other another up down out "
    "off again only just even still too very also after before until since during about around "
    "once one two"
)
FUNCTION_WORDS = DETERMINERS | PREPOSITIONS | CONJUNCTIONS | VERBS_OF_BEING | _OTHERS
