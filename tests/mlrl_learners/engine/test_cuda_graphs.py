"""The graph recorder, against a fake `torch.cuda` and on a GPU if there is one."""

import contextlib
import warnings

import pytest
import torch

from mlrl_learners.engine import TokenRow
from mlrl_learners.engine.cuda_graphs import GraphRecorder
from mlrl_learners.engine.static_reader import WARM_UPS
from mlrl_learners.policies import Policy, SamplingConfig, tiny_model

SYNC = "called a synchronizing CUDA operation (Triggered internally at somewhere.cpp:1)"
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


class Stream:
    device_index = 0

    def __init__(self, device=None):
        self.waited_for = []

    def wait_stream(self, other):
        self.waited_for.append(other)


class Graph:
    def __init__(self, cuda):
        self.cuda, self.tape = cuda, None

    def replay(self):
        self.cuda.replays += 1
        getattr(self.tape, "play", int)()


class Cuda:
    """As much of `torch.cuda` as a recorder asks for; computes at once."""

    def __init__(self, *, breaks=False, tape=contextlib.nullcontext):
        self.here = self.now = Stream()
        self.breaks, self.mode, self.ended, self.released = breaks, "default", [], []
        self.Stream, self.CUDAGraph = Stream, lambda: Graph(self)
        self.replays, self.make_tape = 0, tape

    def current_stream(self, device=None):
        return self.now

    def set_stream(self, stream):
        self.now = stream

    @contextlib.contextmanager
    def stream(self, stream):
        before, self.now = self.now, stream
        yield
        self.now = before

    def device(self, device):
        return contextlib.nullcontext()

    def graph_pool_handle(self):
        return (0, 7)

    @contextlib.contextmanager
    def graph(self, graph, *, pool, stream, capture_error_mode):
        before, self.now = self.now, stream
        graph.tape = self.make_tape()
        with graph.tape:
            yield
        if self.breaks:  # as torch does: the stream stays
            raise RuntimeError("capture was invalidated\nmore")
        self.now = before

    def end_pool(self, device, pool):
        self.ended.append((device, pool))

    def release_pool(self, device, pool):
        self.released.append((device, pool))

    def get_sync_debug_mode(self):
        return self.mode

    def set_sync_debug_mode(self, mode):
        self.mode = mode


@pytest.fixture
def cuda(monkeypatch):
    def put(**options):
        fake = Cuda(**options)
        for name in dir(fake):
            if hasattr(torch.cuda, name) and not name.startswith("_"):
                monkeypatch.setattr(torch.cuda, name, getattr(fake, name))
        monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", fake.end_pool, raising=False)
        monkeypatch.setattr(torch._C, "_cuda_releasePool", fake.release_pool, raising=False)
        return fake

    return put


def test_warming_up_waits_for_what_was_before_and_is_waited_for(cuda):
    fake, recorder, seen = cuda(), GraphRecorder(torch.device("cuda:0")), []
    recorder.warm_up(lambda: seen.append(fake.now), last=False)
    (side,) = seen
    assert side is not fake.here
    assert side.waited_for == [fake.here]
    assert fake.here.waited_for == [side]
    recorder.warm_up(lambda: seen.append(fake.now), last=True)
    assert seen == [side, side]
    assert recorder.usable


def test_work_that_waits_for_the_gpu_is_given_up_before_it_is_recorded(cuda):
    fake, recorder = cuda(), GraphRecorder(torch.device("cuda:0"))
    with pytest.warns(RuntimeWarning, match="waits for the GPU"):
        recorder.warm_up(lambda: warnings.warn(SYNC, stacklevel=1), last=True)
    assert not recorder.usable
    assert fake.mode == "default"
    assert recorder.record(lambda: pytest.fail("recorded")) is None


def test_what_is_replayed_returns_the_tensor_that_was_recorded(cuda):
    fake, recorder, result = cuda(), GraphRecorder(torch.device("cuda:0")), torch.ones(1)
    replay = recorder.record(lambda: result)
    assert replay() is result
    assert replay() is result
    assert fake.replays == 2


def test_a_capture_that_fails_leaves_no_traces(cuda):
    fake, recorder = cuda(breaks=True), GraphRecorder(torch.device("cuda:0"))
    with pytest.warns(RuntimeWarning, match="without CUDA graphs.*: capture was invalidated$"):
        assert recorder.record(lambda: torch.ones(1)) is None
    assert fake.now is fake.here
    assert fake.ended == fake.released == [(0, (0, 7))]
    assert not recorder.usable


def policy_on(device, dtype, precision):
    model, tokenizer = tiny_model(num_layers=3)
    head = torch.nn.Linear(model.config.hidden_size, len(tokenizer))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        head.weight.copy_(torch.randn(head.weight.shape, generator=generator) * 0.4)
        head.bias.zero_()
        head.bias[tokenizer.eos_token_id] = 2.5
    model.lm_head = head
    return Policy(model.to(device, dtype), tokenizer, precision=precision)


def sample(policy, length=600, num_samples=8):
    sampling = SamplingConfig(max_new_tokens=length, temperature=0.7, top_p=0.95)
    prompts = [list(range(1, 40)), [1, 2, 3], list(range(5, 20))]
    return policy.complete(prompts, num_samples, sampling, seeds=[0, 1, 2])


def differences(ours, theirs):
    """Return by how much log-probabilities differ where answers agree, and how many agree."""
    pairs = [p for pair in zip(ours, theirs, strict=True) for p in zip(*pair, strict=True)]
    same = [(a, b) for a, b in pairs if a.token_ids == b.token_ids]
    differ = [abs(x - y) for a, b in same for x, y in zip(a.logprobs, b.logprobs, strict=True)]
    return max(differ, default=0.0), len(same) / len(pairs)


def num_apart(ours, theirs, bound=1e-4):
    """Return how many log-probabilities of equal answers are at least `bound` apart."""
    answers = [p for pair in zip(ours, theirs, strict=True) for p in zip(*pair, strict=True)]
    pairs = [p for a, b in answers for p in zip(a.logprobs, b.logprobs, strict=True)]
    return sum(abs(x - y) >= bound for x, y in pairs)


def test_a_model_decodes_the_same_by_way_of_a_recorder(cuda, make_tape):
    policy = policy_on("cpu", torch.float32, "float32")
    expected = sample(policy, length=40, num_samples=2)
    fake = cuda(tape=make_tape)
    policy.engine.override(reader="static", recorder=GraphRecorder(torch.device("cuda:0")))
    difference, agreement = differences(sample(policy, length=40, num_samples=2), expected)
    assert agreement == 1.0
    assert difference < 1e-4
    steps = 40 - 1 - WARM_UPS  # the last token is not read
    assert fake.replays == steps + steps - 1  # the first recorded step's tokens are drawn as usual
    assert fake.now is fake.here


@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("reader", ["llama", "static"])
@pytest.mark.parametrize("end", [2.5, -20.0])
def test_graphs_draw_the_tokens_that_a_cache_that_grows_draws(end, reader):
    """Answers of up to 600 tokens: rooms are built anew, and rows leave where some end."""
    policy = policy_on("cuda", torch.float32, "float32")
    policy.model.lm_head.bias.data[policy.eos_ids[0]] = end
    assert policy.engine.mode.reader == "llama"
    policy.engine.override(reader=reader, recorder=policy.engine.recorder)
    assert policy.engine.recorder is not None
    recorded = sample(policy)
    assert policy.engine.recorder.usable
    policy.engine.override(reader="module")
    grown = sample(policy)
    assert differences(recorded, grown)[1] == 1.0
    # Rounding may move a token across the border of a nucleus, whose probability is lost then.
    assert num_apart(recorded, grown) <= 1e-3 * num_apart(recorded, grown, 0.0)


@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("reader", ["llama", "static"])
@pytest.mark.parametrize(
    ("dtype", "precision"), [(torch.bfloat16, "float32"), (torch.float32, "bf16")]
)
def test_graphs_compute_in_bfloat16_what_the_same_steps_compute_unrecorded(
    dtype, precision, reader
):
    policy = policy_on("cuda", dtype, precision)
    assert policy.engine.mode.reader == "llama"
    policy.engine.override(reader=reader, recorder=policy.engine.recorder)
    recorded = sample(policy, length=200)
    recorder = policy.engine.recorder
    assert recorder.usable
    recorder.record = lambda work: None  # the same steps, never replayed
    assert differences(recorded, sample(policy, length=200)) == (0.0, 1.0)


@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_graphs_of_adapters_draw_what_is_drawn_without(precision, make_policies):
    base, *_ = make_policies(["a", "b"], precision=precision)
    base.model.to("cuda")
    recorder = GraphRecorder(base.device)
    base.engine.override(reader="static", recorder=recorder)
    sampling = SamplingConfig(max_new_tokens=60, temperature=0.7, top_p=0.9)
    prompts, names = [[1, 2, 3], [4, 5], [6]], ["b", None, "a"]

    def answers():
        return base.complete(prompts, 4, sampling, seeds=[0, 1, 2], adapters=names)

    recorded = answers()
    assert recorder.usable
    recorder.record = lambda work: None
    assert differences(recorded, answers()) == (0.0, 1.0)


@needs_gpu
@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "precision"), [("bfloat16", "float32"), ("float32", "bf16")])
def test_fewer_operations_are_as_near_to_float32_as_the_models_own(dtype, precision):
    exact = policy_on("cuda", torch.float32, "float32")
    half = policy_on("cuda", getattr(torch, dtype), precision)
    answers = [answer for group in sample(half, length=200) for answer in group]
    rows = [TokenRow.sampled(answer) for answer in answers]
    sampled = torch.tensor([odds for answer in answers for odds in answer.logprobs])
    exact_ones, _ = exact.logprobs(rows, temperature=0.7)
    trained, _ = half.logprobs(rows, temperature=0.7)
    errors = [(ones - exact_ones.cpu()).abs().mean() for ones in (sampled, trained.cpu())]
    assert errors[0] < 2 * errors[1] + 1e-4


@needs_gpu
@pytest.mark.gpu
def test_memory_of_graphs_is_given_back():
    policy = policy_on("cuda", torch.float32, "float32")
    sample(policy)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(3):
        sample(policy)
    assert torch.cuda.memory_allocated() <= before


@needs_gpu
@pytest.mark.gpu
def test_a_model_that_waits_decodes_without_graphs_and_the_gpu_goes_on():
    policy = policy_on("cuda", torch.float32, "float32")
    policy.engine.override(reader="static", recorder=policy.engine.recorder)
    expected = sample(policy, length=40)
    policy.model.model.register_forward_hook(lambda _, __, out: float(out[0].sum()) and None)
    policy.engine.override(reader="llama", recorder=GraphRecorder(policy.device))
    with pytest.warns(RuntimeWarning, match="without CUDA graphs"):
        assert differences(sample(policy, length=40), expected) == (0.0, 1.0)
    torch.cuda.empty_cache()
    torch.rand(3, device="cuda")
