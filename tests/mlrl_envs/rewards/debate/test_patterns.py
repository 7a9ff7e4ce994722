import re

from hypothesis import example, given
from hypothesis import strategies as st

from mlrl_envs.rewards.debate.patterns import AnyCase

PATTERN = r"\b(?:is|so (?:that|\w+ly))\b"


@given(st.text("iIsSoO\u0130\u0131\u017f thatly"))
@example("So THAT it IS so Slowly")
@example("\u0130s")
def test_what_is_found_is_what_the_flag_finds(text):
    flagged = re.compile(PATTERN, re.IGNORECASE)
    assert AnyCase(PATTERN).count(text) == len(flagged.findall(text))
    assert AnyCase(PATTERN).is_in(text) == bool(flagged.search(text))
