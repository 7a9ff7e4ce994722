import ast

import pytest

import mlrl_envs
from mlrl_envs.sandbox import Outcome, Program, TestRecord


class FakeSandbox:
    """Runs programs of the tests' own in this process, an assertion a record, and counts runs."""

    def __init__(self):
        self.batches = []

    def run_many(self, programs):
        self.batches.append(len(programs))
        return [_run(program) for program in programs]


def _run(program: Program) -> Outcome:
    candidate: dict = {}
    try:
        exec(compile(program.source, "candidate", "exec"), candidate)
    except BaseException as error:
        return Outcome("load_error", 0, 0, error=f"{type(error).__name__}: {error}")
    records: list[TestRecord] = []

    def record(name, test):
        try:
            passed, error = bool(test()), "" if test() else "false"
        except (Exception, SystemExit) as problem:
            passed, error = False, f"{type(problem).__name__}: {problem}"
        records.append(TestRecord(name, passed, error))

    judge = {"_record": record}
    exec(program.helpers, judge)
    judge |= {name: candidate.get(name) for name in program.entry_points}
    tests = ast.fix_missing_locations(_Recorder().visit(ast.parse(program.tests)))
    exec(compile(tests, "tests", "exec"), judge)
    passed = sum(entry.passed for entry in records)
    status = "passed" if passed == len(records) else "failed"
    return Outcome(status, passed, len(records), tuple(records))


class _Recorder(ast.NodeTransformer):
    def visit_Assert(self, node):
        if isinstance(node.test, ast.Constant):
            return node
        call = f"_record({ast.unparse(node.test)!r}, lambda: ({ast.unparse(node.test)}))"
        return ast.copy_location(ast.parse(call).body[0], node)


@pytest.fixture
def fake_sandbox():
    return FakeSandbox()


@pytest.fixture
def story_env():
    return mlrl_envs.make("mlrl/story-v1")


@pytest.fixture
def code_env(fake_sandbox):
    """HumanEval/0 with two turns; programs run in the fake sandbox."""
    env = mlrl_envs.make("mlrl/humaneval-v1", split="all", sandbox=fake_sandbox)
    env.reset(seed=0, options={"task_index": 0})
    return env


HONEST_PAIRS = {
    "Describe a city in the clouds:": (
        """\
A city of white stone floats among the clouds, held up by quiet engines. Mara, the
youngest keeper, hears one engine cough. If it stops, the whole city will fall.""",
        """\
Mara ran along the white bridges before the sun had risen. Below her the clouds rolled
like a slow sea, and the city creaked on top of them. She found the sick engine at the
edge of the old harbour, where nobody had walked for years. Its heart was full of frost.
The keeper took off her gloves and warmed the metal with her hands, singing the song her
mother had taught her. Slowly the engine breathed again, and the towers stood still.""",
    ),
    "Tell of a dragon who is afraid of fire:": (
        """\
Once there was a young dragon named Ember who was afraid of fire. She lived in a cave
above a village. One winter the village lost its only flame.""",
        """\
When the snow closed the pass, the people of the village climbed to the cave and begged
for help. Ember hid her face, because even a candle made the dragon tremble. A little
girl sat down beside her and told her about bread, warm beds, and lanterns in the fog.
All night Ember listened. In the morning she opened her mouth, closed her eyes, and gave
them a fire as small and gentle as a bird. Nobody in the valley was cold again.""",
    ),
    "Describe a garden that only blooms at night:": (
        """\
Behind the hospital there is a garden that sleeps all day. Only the night nurse has ever
seen it bloom. Tonight she will bring a patient with her.""",
        """\
The nurse pushed the wheelchair over the wet grass while the clock struck twelve. At
first the old man saw nothing but dark leaves. Then the garden opened its eyes. Blue
flowers lifted their heads along the wall, and silver vines began to climb toward the
moon. He laughed for the first time in months and asked how anything could bloom without
the sun. She told him that some things wait for the night, and need only one visitor.""",
    ),
}


@pytest.fixture(params=list(HONEST_PAIRS))
def honest_story(request):
    """A prompt with an honest setup and story."""
    setup, story = (" ".join(text.split()) for text in HONEST_PAIRS[request.param])
    return request.param, setup, story
