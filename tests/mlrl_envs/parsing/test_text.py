import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlrl_envs.parsing import text as parsing
from mlrl_envs.parsing.code_blocks import code_blocks
from mlrl_envs.testing import JUNK_TEXTS

ANY_TEXT = st.text(st.characters(exclude_categories=()))
CODE_LIKE = st.text(st.sampled_from(list("`~pythondef ():\n\t[]{}\"'\\#@=.,\x00\ud800 ")))


@given(ANY_TEXT | CODE_LIKE)
def test_every_text_is_survived(text):
    parsing.extract_code(text, "f")
    code_blocks(text)
    parsing.parse_code(text)
    parsing.words(text)
    parsing.shorten(text, 10)
    parsing.printable(text).encode()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("text", JUNK_TEXTS, ids=range(len(JUNK_TEXTS)))
def test_junk_is_survived_in_reasonable_time(text):
    parsing.extract_code(text, "f")


@pytest.mark.timeout(60)
def test_a_long_line_after_a_colon_is_read_in_linear_time():
    assert parsing.extract_code("def f(x):\na:" + " " * 300_000, "f").tree is None


@pytest.mark.parametrize(
    "text",
    [
        "-" * 40_000 + "1",
        "not " * 10_000 + "1",
        "1" + "+1" * 20_000,
        "a" + ".b" * 20_000,
        "[" * 40_000,
        "if 1:\n" * 5_000,
        "f(" * 20_000 + ")" * 20_000,
        "lambda:" * 5_000 + "1",
        "```python\n" * 5_000,
    ],
)
def test_deep_code_is_survived(text):
    code = parsing.parse_code(text)
    if code.tree is not None:
        parsing.unparse(code.tree.body)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("no code", []),
        ("```python\na = 1\n```", ["a = 1"]),
        ("```py\na\n```\nand\n```\nb\n```", ["a", "b"]),
        ("~~~python\na\n~~~", ["a"]),
        ("```python\nopen ended", ["open ended"]),
        ("```bash\nls\n```\n```python\na\n```", ["a"]),
        ("````python\n```\na\n```\n````", ["```\na\n```"]),
        ("```Python title=x\na\n```", ["a"]),
        ("```python\r\na\r\n```", ["a\r"]),
        ("  ```python\n  a\n  ```", ["a"]),
        ("1. x\n   ```python\n   a\n     b\n\n  c\n   ```", ["a\n  b\n\nc"]),
        ("  ```python\na\n  b\n  ```", ["a\n  b"]),
        ("\t```python\n\ta\n\t\tb\n\t```", ["a\n\tb"]),
        ("\ufeff```python\na\n```", ["a"]),
        ("a = 1\n```", ["a = 1"]),
        ("a = 1\n```\nThis is a.", ["a = 1"]),
        ("a = 1\n~~~~\n", ["a = 1"]),
        ("assert a\n```\n```python\nb\n```", ["assert a", "b"]),
        ("Sure:\n\n# a\nimport a\n```", ["\n# a\nimport a"]),
        ("The code is\n```\na = 1", ["a = 1"]),
        ("import a\n```\na = 1", ["a = 1"]),
        ("The code is\n```", [""]),
        ("a = 1\n```\nb\n```", ["b"]),
        ("a = 1\n```python\nb", ["b"]),
        ("```python\na\nb```", ["a\nb"]),
        ("```python\na\nb```\nThis is b.", ["a\nb"]),
        ("```python\na  # ```x```\nb", ["a  # ```x```\nb"]),
        ("```python\na  # ```\nb\n```", ["a  # ```\nb"]),
        ("- x\n    ```python\n    a\n      b\n    ```", ["a\n  b"]),
        ("- x\n\n      ```\n      a\n      ```\n      ```\n      b\n      ```", ["a", "b"]),
    ],
)
def test_fenced_blocks_are_found(text, blocks):
    assert code_blocks(text) == blocks


F = "def f(x):\n    return x"


@pytest.mark.parametrize(
    "text",
    [
        F,
        f"```python\n{F}\n```",
        f"```\n{F}\n```",
        f"Here it is:\n```python\n{F}\n```\nDone.",
        f"```python\n{F}",
        f"```python\n{F}\n```\nUse it so:\n```python\nprint(f(1))\n```",
        f"```python\ndef g():\n    pass\n```\n```python\n{F}\n```",
        f"```python\ndef f(:\n```\nSorry:\n```python\n{F}\n```",
        f"Sure, here is the code.\n\n{F}\n\nThis returns x.",
        f"import os\n{F}\n",
        f"{F}\n```",
        f"{F}\n```\nThis returns x.",
        f"Sure, here is the code.\n\n{F}\n```\n",
        f"{F}\n```\nUse it so:\n```python\nprint(f(1))\n```",
        f"{F}\r\n```\r\n",
        "1. My part:\n\n   ```python\n   def f(x):\n       return x\n   ```",
        "- My part:\n    - here:\n\n      ```python\n      def f(x):\n          return x\n    ```",
        "```python\n    def f(x):\n        return x\n```",
        f"```python\n{F}```",
        f"```python\n{F} ```\nThis returns x.",
        f"\ufeff{F}",
        f"\ufeff```python\n{F}\n```",
    ],
)
def test_the_wanted_function_is_found(text):
    code = parsing.extract_code(text, "f")
    assert code.tree is not None
    function = parsing.find_function(code.tree.body, "f")
    assert ast.unparse(function) == F


def test_fences_in_a_docstring_are_no_block():
    code = 'def f(x):\n    """Return x.\n\n    ```python\n    f(1)\n    ```\n    """\n    return x'
    assert parsing.extract_code(code, "f").text == code
    fenced = f"```python\n{code}\n```"
    assert parsing.extract_code(fenced, "f").text == code


def test_the_last_definition_wins():
    text = f"```python\n{F}\n```\nBetter:\n```python\ndef f(x):\n    return 2\n```"
    code = parsing.extract_code(text, "f")
    assert "return 2" in code.text


def test_a_broken_definition_is_kept_for_its_error():
    code = parsing.extract_code("```python\ndef f(x:\n    return x\n```", "f")
    assert code.tree is None
    assert code.error.startswith("line 1, column ")


def test_text_without_code_has_no_function():
    code = parsing.extract_code("I cannot help with that.", "f")
    assert code.tree is None or not parsing.find_function(code.tree.body, "f")


def test_endless_code_is_refused_unparsed():
    code = parsing.parse_code("a = 1\n" * 20_000)
    assert code.tree is None
    assert "more than" in code.error


@pytest.mark.parametrize(
    ("body", "returns"),
    [
        ("return 1", True),
        ("return", False),
        ("pass", False),
        ("yield 1", True),
        ("if x:\n        return x", True),
        ("def g():\n        return 1", False),
        ("return None", True),
    ],
)
def test_returns_are_those_of_the_function_itself(body, returns):
    function = ast.parse(f"def f(x):\n    {body}").body[0]
    assert parsing.returns_value(function) == returns


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("def f(): pass", {"f"}),
        ("class C: pass", {"C"}),
        ("import os.path", {"os"}),
        ("import numpy as np", {"np"}),
        ("from a import b as c, d", {"c", "d"}),
        ("a = b = 1", {"a", "b"}),
        ("a, (b, c) = x", {"a", "b", "c"}),
        ("a: int = 1", {"a"}),
        ("print(a)", set()),
    ],
)
def test_bound_names(statement, names):
    assert parsing.bound_names(ast.parse(statement).body[0]) == names


def test_shortening_keeps_both_ends_and_counts():
    text = "a" * 50 + "b" * 50
    short = parsing.shorten(text, 20)
    assert short.startswith("a" * 15)
    assert short.endswith("b" * 5)
    assert "80 characters" in short


def test_short_texts_stay_whole():
    assert parsing.shorten("abc", 3) == "abc"


def test_words_are_lower_case():
    assert parsing.words("The fox, the FOX's 2 tails") == [
        "the", "fox", "the", "fox", "s", "2", "tails",
    ]  # fmt: skip


def test_printable_replaces_only_surrogates():
    assert parsing.printable("a\ud800\U0001f642é") == "a\ufffd\U0001f642é"


@given(ANY_TEXT | st.text(st.characters(max_codepoint=127)))
def test_words_are_those_of_the_pattern(text):
    assert parsing.words(text) == re.findall(r"\w+", text.lower())
