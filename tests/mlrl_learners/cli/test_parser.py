from mlrl_learners.cli.parser import print_table

ERASE = "\x1b[2J"


def test_text_of_somebody_else_in_a_table_does_not_reach_the_terminal_as_control(capsys):
    print_table(("entry", f"{ERASE}name"), [("a\nb", ERASE), ("c", "\u202ed")])
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert len(printed.splitlines()) == 3
