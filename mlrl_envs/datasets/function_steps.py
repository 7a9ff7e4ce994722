"""Steps of generated functions: each is a sentence and the Python expression that it describes.

A step turns a value of one kind into a value of the same or another kind; a result ends a function.
`{x}` stands for the value, `{k}` for a parameter.
"""

from dataclasses import dataclass

__all__ = ["KINDS", "RESULTS", "STEPS", "Kind", "Step"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value.

    Attributes:
        variable: Name of the parameter and of the variable.
        annotation: Its type.
        description: What the prompt calls it.
    """

    variable: str
    annotation: str
    description: str


@dataclass(frozen=True, slots=True)
class Step:
    """A step or a result.

    Attributes:
        name: Part of the name of the function.
        sentence: What the prompt says, without a full stop.
        code: A Python expression.
        kind: Kind of the value that it reads.
        becomes: Kind of a step's value; type annotation of a result.
        parameters: Values of `{k}`; empty if there is none.
    """

    name: str
    sentence: str
    code: str
    kind: str
    becomes: str
    parameters: tuple[int | str, ...] = ()

    def with_parameter(self, value: int | str) -> "Step":
        """Return this step with a value of its parameter."""
        sentence = self.sentence.replace("{k}", str(value))
        return Step(self.name, sentence, self.code.replace("{k}", str(value)), self.kind,
                    self.becomes)  # fmt: skip


KINDS = {
    "numbers": Kind("numbers", "list[int]", "a list of integers"),
    "words": Kind("words", "list[str]", "a list of words in small letters"),
    "text": Kind("text", "str", "a string of words in small letters, with spaces between them"),
}
_LETTERS = tuple("adeghilnoprstu")


def _on_numbers(name: str, sentence: str, code: str, *parameters: int | str) -> Step:
    return Step(name, sentence, code, "numbers", "numbers", parameters)


def _on_words(name: str, sentence: str, code: str, *parameters: int | str) -> Step:
    return Step(name, sentence, code, "words", "words", parameters)


def _on_text(name: str, sentence: str, code: str, *parameters: int | str) -> Step:
    return Step(name, sentence, code, "text", "text", parameters)


STEPS = (
    _on_numbers("multiples", "Keep the numbers that are divisible by {k}",
                "[n for n in {x} if n % {k} == 0]", *range(2, 8)),
    _on_numbers("above", "Keep the numbers greater than {k}",
                "[n for n in {x} if n > {k}]", *range(-9, 15)),
    _on_numbers("within", "Keep the numbers from -{k} to {k}",
                "[n for n in {x} if -{k} <= n <= {k}]", *range(4, 18)),
    _on_numbers("plus", "Add {k} to each number", "[n + {k} for n in {x}]", *range(1, 16)),
    _on_numbers("times", "Multiply each number by {k}", "[n * {k} for n in {x}]", *range(2, 13)),
    _on_numbers("squares", "Square each number", "[n * n for n in {x}]"),
    _on_numbers("absolute", "Replace each number by its absolute value", "[abs(n) for n in {x}]"),
    _on_numbers("remainders", "Replace each number n by n % {k}", "[n % {k} for n in {x}]",
                *range(3, 15)),
    _on_numbers("digits", "Replace each number by the sum of the digits of its absolute value",
                "[sum(int(d) for d in str(abs(n))) for n in {x}]"),
    _on_numbers("ascending", "Sort the numbers in ascending order", "sorted({x})"),
    _on_numbers("descending", "Sort the numbers in descending order", "sorted({x}, reverse=True)"),
    _on_numbers("reversed", "Reverse the order of the numbers", "{x}[::-1]"),
    _on_numbers("distinct", "Remove repeated numbers; the first of each stays in its place",
                "list(dict.fromkeys({x}))"),
    _on_numbers("without_first", "Remove the first {k} numbers", "{x}[{k}:]", 2, 3),
    _on_numbers("first", "Keep the first {k} numbers and remove the others", "{x}[:{k}]",
                2, 3, 4, 5),
    _on_numbers("totals", "Replace each number by the sum of all numbers up to it, itself included",
                "[sum({x}[: i + 1]) for i in range(len({x}))]"),
    _on_numbers("gaps", "Replace the list by the list of b - a for all neighbours a, b",
                "[b - a for a, b in zip({x}, {x}[1:])]"),
    _on_words("long", "Keep the words with more than {k} letters",
              "[w for w in {x} if len(w) > {k}]", 3, 4, 5),
    _on_words("short", "Keep the words with fewer than {k} letters",
              "[w for w in {x} if len(w) < {k}]", 5, 6, 7),
    _on_words("having", "Keep the words that contain the letter {k}",
              "[w for w in {x} if '{k}' in w]", *_LETTERS),
    _on_words("lacking", "Remove the words that contain the letter {k}",
              "[w for w in {x} if '{k}' not in w]", *_LETTERS),
    _on_words("without_letter", "Remove every letter {k} from each word",
              "[w.replace('{k}', '') for w in {x}]", *_LETTERS),
    _on_words("vowel_first", "Keep the words that begin with a vowel (a, e, i, o, u)",
              "[w for w in {x} if w[:1] in tuple('aeiou')]"),
    _on_words("backwards", "Reverse the letters of each word", "[w[::-1] for w in {x}]"),
    _on_words("capitals", "Turn all letters of each word into capital letters",
              "[w.upper() for w in {x}]"),
    _on_words("heads", "Cut each word after its first {k} letters", "[w[:{k}] for w in {x}]",
              1, 2, 3, 4),
    _on_words("sized", "Append to each word its number of letters, as digits",
              "[w + str(len(w)) for w in {x}]"),
    _on_words("sorted", "Sort the words alphabetically", "sorted({x})"),
    _on_words("by_length", "Sort the words by length; words of equal length keep their order",
              "sorted({x}, key=len)"),
    _on_words("reversed", "Reverse the order of the words", "{x}[::-1]"),
    _on_words("distinct", "Remove repeated words; the first of each stays in its place",
              "list(dict.fromkeys({x}))"),
    _on_words("without_first", "Remove the first {k} words", "{x}[{k}:]", 2, 3),
    Step("lengths", "Replace each word by its number of letters", "[len(w) for w in {x}]",
         "words", "numbers"),
    Step("joined", "Join the words to one string, with a space between them", "' '.join({x})",
         "words", "text"),
    _on_text("no_vowels", "Remove all vowels (a, e, i, o, u)",
             "''.join(c for c in {x} if c not in 'aeiou')"),
    _on_text("no_spaces", "Remove all spaces", "{x}.replace(' ', '')"),
    _on_text("underscores", "Replace each space by an underscore", "{x}.replace(' ', '_')"),
    _on_text("capitals", "Turn all letters into capital letters", "{x}.upper()"),
    _on_text("backwards", "Reverse the string", "{x}[::-1]"),
    _on_text("starred", "Replace every letter {k} by an asterisk", "{x}.replace('{k}', '*')",
             *_LETTERS),
    _on_text("without_letter", "Remove every letter {k}", "{x}.replace('{k}', '')", *_LETTERS),
    _on_text("first", "Keep the first {k} characters", "{x}[:{k}]", *range(5, 12)),
    _on_text("every_other", "Keep the first character and every second one after it", "{x}[::2]"),
    Step("split", "Split the string into words", "{x}.split()", "text", "words"),
    Step("places", "List the positions of the letter {k}, counted from 0",
         "[i for i, c in enumerate({x}) if c == '{k}']", "text", "numbers", _LETTERS),
)  # fmt: skip
RESULTS = (
    Step("list", "Return the list", "{x}", "numbers", "list[int]"),
    Step("sum", "Return the sum of the numbers", "sum({x})", "numbers", "int"),
    Step("count", "Return how many numbers there are", "len({x})", "numbers", "int"),
    Step("largest", "Return the largest number, or 0 if there is none", "max({x}, default=0)",
         "numbers", "int"),
    Step("smallest", "Return the smallest number, or 0 if there is none", "min({x}, default=0)",
         "numbers", "int"),
    Step("spread", "Return the largest number minus the smallest, or 0 if there is none",
         "max({x}, default=0) - min({x}, default=0)", "numbers", "int"),
    Step("last", "Return the last number, or 0 if there is none", "{x}[-1] if {x} else 0",
         "numbers", "int"),
    Step("counts", "Return a dictionary that maps each number to how often it occurs",
         "{n: {x}.count(n) for n in {x}}", "numbers", "dict[int, int]"),
    Step("list", "Return the list", "{x}", "words", "list[str]"),
    Step("count", "Return how many words there are", "len({x})", "words", "int"),
    Step("hyphens", "Return the words as one string, with a hyphen between them",
         "'-'.join({x})", "words", "str"),
    Step("longest", "Return the longest word, the first of equally long ones, or '' if there is "
         "none", "max({x}, key=len, default='')", "words", "str"),
    Step("letters", "Return the sum of the lengths of the words", "sum(len(w) for w in {x})",
         "words", "int"),
    Step("counts", "Return a dictionary that maps each word to how often it occurs",
         "{w: {x}.count(w) for w in {x}}", "words", "dict[str, int]"),
    Step("string", "Return the string", "{x}", "text", "str"),
    Step("length", "Return the length of the string", "len({x})", "text", "int"),
    Step("letter_count", "Return how many characters are the letter {k}", "{x}.count('{k}')",
         "text", "int", _LETTERS),
    Step("different", "Return how many different characters occur", "len(set({x}))", "text",
         "int"),
    Step("last", "Return the last character, or '' if the string is empty", "{x}[-1:]", "text",
         "str"),
)  # fmt: skip
