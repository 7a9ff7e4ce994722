"""Solutions of the sample rows, named like their entry points; parsed, never imported."""

import itertools
import math


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % n for n in range(2, math.isqrt(number) + 1))


def count_turning_points(numbers: list[int]) -> int:
    """Count the numbers that are above or below both their neighbours."""
    threes = zip(numbers, numbers[1:], numbers[2:], strict=False)
    return sum((b - a) * (c - b) < 0 for a, b, c in threes)


def words_of_primes(words: list[str]) -> list[str]:
    """Keep the words of prime length."""
    return [word for word in words if _is_prime(len(word))]


def largest_palindrome_part(text: str) -> str:
    """Return the first of the longest palindromes in a text."""
    parts = [text[i:j] for i in range(len(text)) for j in range(i + 1, len(text) + 1)]
    return max((part for part in parts if part == part[::-1]), key=len, default="")


def perfect_power_sums(numbers: list[int]) -> list[int]:
    """Keep the numbers whose squared digits sum to a square."""
    sums = [sum(int(digit) ** 2 for digit in str(number)) for number in numbers]
    return [n for n, total in zip(numbers, sums, strict=True) if math.isqrt(total) ** 2 == total]


def overlap_minutes(first: tuple[int, int], second: tuple[int, int]) -> int:
    """Return the length of what two ranges share."""
    return max(0, min(first[1], second[1]) - max(first[0], second[0]))


def is_stepped_word(word: str) -> bool:
    """Return whether each letter is the neighbour of the one before."""
    return all(abs(ord(a) - ord(b)) == 1 for a, b in itertools.pairwise(word))


def nearest_multiple(number: int, step: int) -> int:
    """Return the nearest multiple, the larger one of two."""
    return (2 * number + step) // (2 * step) * step


def common_factors_sum(a: int, b: int) -> int:
    """Return the sum of the common divisors."""
    shared = math.gcd(a, b)
    return sum(n for n in range(1, shared + 1) if shared % n == 0)
