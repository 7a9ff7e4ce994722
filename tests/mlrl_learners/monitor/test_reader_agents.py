"""Agents of the reader: their colours, and what is shown of those that wait."""

import re


def alternating(reward=0.0):
    """Two turns of two agents, of which one acts and the other waits."""
    facts = {"checks": [{"name": "the answer", "passed": False, "status": "wrong"}]}
    return {
        "task_id": "T/1",
        "seed": 1,
        "return": reward,
        "turns": [
            {
                "observations": {agent: "reads"},
                "actions": {agent: "words"},
                "rewards": {"a": reward, "b": reward},
                "diagnostics": {"a": facts, "b": facts},
            }
            for agent in ("a", "b")
        ],
    }


def test_an_agent_has_one_colour_in_every_turn(served, ask, run):
    run.append("evaluations.jsonl", {"iteration": 0, "episodes": [alternating()]})
    for path in ("/episode?", "/compare?other=first&"):
        _, _, text = ask(f"{served}{path}run=first&source=evaluation&key=0-0")
        cards = re.findall(r'<article class="agent (c[01])">.*?<strong><bdi>(\w)</bdi>', text)
        assert {name: color for color, name in cards} == {"a": "c0", "b": "c1"}
        assert len(set(cards)) == 2


def test_what_an_agent_that_waits_shares_with_one_that_wrote_is_shown_once(served, ask, run):
    run.append("evaluations.jsonl", {"iteration": 0, "episodes": [alternating()]})
    _, _, text = ask(f"{served}/episode?run=first&source=evaluation&key=0-0")
    assert text.count("waits</strong>") == 2
    assert text.count("the answer") == 2  # once a turn


def test_many_agents_are_rows_of_the_totals_so_that_they_fit_beside_the_turns(served, ask, run):
    names = [f"agent_{n}" for n in range(5)]
    turn = {
        "actions": dict.fromkeys(names, "words"),
        "rewards": {name: float(n) for n, name in enumerate(names)},
    }
    episode = {"task_id": "T/1", "seed": 1, "return": 2.0, "turns": [turn, turn]}
    run.append("evaluations.jsonl", {"iteration": 0, "episodes": [episode]})
    _, _, text = ask(f"{served}/episode?run=first&source=evaluation&key=0-0")
    totals = text[text.index("<aside") : text.index("</aside>")]
    assert '<th scope="row"><bdi>agent_4</bdi></th><td>8</td>' in totals
    assert 'href="#turn-2"' in totals
