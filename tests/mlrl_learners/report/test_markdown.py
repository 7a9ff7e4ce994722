from mlrl_learners.report.markdown import episode_markdown
from mlrl_learners.runs.stored import decode_turn


def test_a_text_cannot_close_its_fence():
    turn = decode_turn(
        {
            "observations": {"a": "task"},
            "actions": {"a": "````\n# heading\n````"},
            "rewards": {"a": 0.5},
        }
    )
    text = episode_markdown("T/1\n# no heading", ["run first"], [turn])
    assert text.startswith("# T/1 # no heading\n\n- run first\n")
    assert "`````text\n````\n# heading\n````\n`````" in text
    assert "### a writes (reward 0.5)" in text


def test_a_name_is_text_and_no_markup():
    turn = decode_turn({"actions": {"<i>a": "words"}, "observations": {}, "rewards": {}})
    text = episode_markdown("<script>x</script> [a](b)\u202e", ["run *first*"], [turn])
    assert text.startswith(
        "# \\<script\\>x\\</script\\> \\[a\\](b)\N{REPLACEMENT CHARACTER}\n\n- run \\*first\\*"
    )
    assert "### \\<i\\>a writes" in text
