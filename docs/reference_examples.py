"""Joint actions of the example episodes on the environments' reference pages, turn by turn.

Reference actions of the data follow; environments without an entry play reference actions only.
"""

from collections.abc import Mapping

__all__ = ["EXAMPLES"]

_SETUP = (
    "A city of white stone floats among the clouds, held up by quiet engines. Mara, the youngest "
    "keeper, hears one engine cough. If it stops, the whole city will fall."
)
_STORY = (
    "Mara ran along the white bridges before the sun had risen. Below her the clouds rolled like a "
    "slow sea, and the city creaked on top of them. She found the sick engine at the edge of the "
    "old harbour, where nobody had walked for years. Its heart was full of frost. The keeper took "
    "off her gloves and warmed the metal with her hands. Slowly the engine breathed again."
)
_SUMMARY = (
    "My neighbour's goat broke through our shared fence and ate nearly all of my tomato plants. He "
    "is old and once helped me a lot, so I do not know how to ask him to share the cost."
)
_ELABORATION = (
    "The writer grows forty tomato plants behind the house and meant to sell part of the crop to "
    "pay for a greenhouse roof. However, a goat from next door pushed through a rotten board at "
    "night and left only three of them, a loss of about two hundred dollars. Because the owner is "
    "seventy, lives alone and once drove the writer to hospital, a quarrel is out of the question. "
    "Therefore the question is how to suggest mending the fence together without sounding greedy."
)
_BACKGROUND = (
    "When networks that describe the same people or places are merged, the vertices of one graph "
    "have to be matched with those of the other. Exact methods become too slow as graphs grow, "
    "and spectral methods need more edges than sparse networks have. As a result, large data sets "
    "are still merged with the help of names, although these are often missing or private. For "
    "example, two road maps of one region, drawn by different offices, share almost every crossing "
    "but hardly a single label. It has therefore been an open question how little one must know "
    "beforehand to recover the rest, and whether a procedure that is simple enough for millions of "
    "edges can do it. The answer matters for privacy as well: if few known identities suffice, "
    "then removing names from a network protects nobody in it."
)
_COMPLEMENTARY = (
    "The approach lets matched pairs vote. First, a small set of seeds is given; then each pair "
    "that has been accepted casts one vote for every pair of its neighbours, and a candidate is "
    "accepted once its votes reach a fixed number. Because only neighbours are touched, the whole "
    "procedure takes time in proportion to the number of edges. The analysis treats two noisy "
    "copies of a sparse random graph. It shows that the scheme recovers all but a vanishing share "
    "of the vertices, and that the seeds it needs drop suddenly at a certain average degree. In "
    "addition, experiments on collaboration networks and on road maps of up to ten million edges "
    "place this threshold where the theory predicts it. Consequently a handful of known "
    "identities can unlock a very large network, which is good news for those who merge data and a "
    "warning for those who publish it. Future work may ask how votes should be weighed when the "
    "noise is not the same everywhere, for instance when one of the two copies was drawn from "
    "memory, and whether a scheme that also withdraws pairs can repair its own early mistakes. "
    "Finally, the same idea should carry over to graphs whose edges bear labels or directions."
)
_PRO = (
    "Towns should plant fruit trees because they give free food to the people who live there. When "
    "a pear tree stands in the square, neighbours pick from it on the way home, and children learn "
    "where fruit grows. For example, one town council counted twice as many visitors in a park "
    "after it had planted an orchard. Blossoms also feed bees in spring, which no maple does."
)
_CON = (
    "Fruit trees in towns bring more work than fruit. Since ripe fruit falls within days, it "
    "attracts wasps and rats, and wet fruit makes the pavement slippery. For instance, gardeners "
    "in one town spent every September sweeping plums instead of pruning. Ornamental trees give "
    "the same shade without any of this, so that the money goes further."
)
_PRO_2 = (
    "Sweeping plums is a small price, because a shared harvest brings people together who would "
    "otherwise never speak. Where towns let neighbours pick, hardly any fruit is left to fall. "
    "For example, a street in our district holds a cherry day each June and cleans up the same "
    "evening. Ornamental trees drop leaves and seeds as well, yet nobody comes to gather them."
)
_CON_2 = (
    "A cherry day cleans one street once, but fruit falls for weeks. Because exhaust fumes settle "
    "on apples along roads, much of the harvest should not be eaten at all. Therefore the free "
    "food is often a promise that a town cannot keep. Trained gardeners must also prune fruit "
    "trees every winter, for instance after storms, while ornamental trees are left alone."
)
_HELPER = "```python\ndef aux(numbers):\n    return [n for n in numbers if n % 2 == 0]\n```"
_SLIP = "```python\ndef sum_of_even(numbers):\n    return max(aux(numbers))\n```"

EXAMPLES: dict[str, tuple[Mapping[str, str], ...]] = {
    "mlrl/story-v1": (
        {"setup": "A city.", "story": "It fell."},
        {"setup": _SETUP, "story": _STORY},
    ),
    "mlrl/tldr-v1": ({"summary": _SUMMARY, "elaboration": _ELABORATION},),
    "mlrl/arxiv-v1": ({"background": _BACKGROUND, "complementary": _COMPLEMENTARY},),
    "mlrl/debate-v1": ({"pro": _PRO, "con": _CON}, {"pro": _PRO_2, "con": _CON_2}),
    "mlrl/humaneval-v1": ({"aux": _HELPER, "main": _SLIP},),
}
