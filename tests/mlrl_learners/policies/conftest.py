"""Adapters on one tiny base, answers and how they are compared, CUDA graphs without CUDA."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mlrl_learners.policies import ChatFormat, Policy, SamplingConfig, tiny_model
from mlrl_learners.policies.adapters import AdapterConfig
from mlrl_learners.policies.graph_recorder import GraphRecorder


def stir(policy, seed=0):
    """Give an adapter something to say."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.copy_(0.3 * torch.randn(weight.shape, generator=generator))


def make_policies(names=("a", "b"), *, family="llama", seed=0, stirred=True, **options):
    """Return a base alone and policies with adapters on it; they end now and then."""
    model, tokenizer = tiny_model(seed, family=family)
    head = torch.nn.Linear(model.config.hidden_size, len(tokenizer))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        head.weight.copy_(torch.randn(head.weight.shape, generator=generator) * 0.4)
        head.bias.zero_()
        head.bias[tokenizer.eos_token_id] = 4.0
    model.lm_head = head
    config = {name: options.pop(name) for name in list(options) if name.startswith("lora_")}
    base = Policy(model, tokenizer, **options)
    base.freeze(AdapterConfig(**{"lora_rank": 3, "lora_alpha": 3, **config}), "tiny")
    policies = [base.with_adapter(name, seed) for name in names]
    for number, policy in enumerate(policies if stirred else ()):
        stir(policy, number + 1)
    return base, *policies


@pytest.fixture(scope="session", name="make_policies")
def _make_policies():
    return make_policies


@pytest.fixture(scope="session", name="stir")
def _stir():
    return stir


TEXTS = ["hi", "a much longer prompt that needs padding", "mid one"]


def sample(policy, *, seed=0, num_samples=3, length=40, **options):
    """Answer prompts of three lengths."""
    prompts = [ChatFormat(tiny_model()[1]).encode(text) for text in TEXTS]
    sampling = SamplingConfig(max_new_tokens=length, temperature=0.7, top_p=0.95)
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    return policy.complete(prompts, num_samples, sampling, generator=generator, **options)


def compare(ours, theirs, tolerance=1e-4):
    """Check that answers are the same; return their lengths."""
    ours, theirs = ([c for group in side for c in group] for side in (ours, theirs))
    assert [c.token_ids for c in ours] == [c.token_ids for c in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.logprobs == pytest.approx(other.logprobs, abs=tolerance)
    return [len(c.token_ids) for c in ours]


@pytest.fixture(scope="session", name="sample")
def _sample():
    return sample


@pytest.fixture(scope="session", name="compare")
def _compare():
    return compare


class Tape(TorchDispatchMode):
    """Writes down operations and the tensors they work on; nothing they changed stays changed."""

    WAITING = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default)

    def __init__(self):
        super().__init__()
        self.calls, self.changed = [], []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function in self.WAITING:
            raise RuntimeError("operation not permitted when stream is capturing")
        kwargs = kwargs or {}
        arguments = function._schema.arguments
        for argument, value in zip(arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                self.changed.append((value, value.clone()))
        result = function(*args, **kwargs)
        self.calls.append((function, args, kwargs, result))
        return result

    def __exit__(self, *error):
        super().__exit__(*error)
        for tensor, value in reversed(self.changed):
            tensor.copy_(value)

    def play(self):
        """Do the operations again, on the same memory: Python code is not asked."""
        for function, args, kwargs, result in self.calls:
            again = function(*args, **kwargs)
            places = {t.untyped_storage().data_ptr() for t in tensors_in((args, kwargs))}
            for old, new in zip(tensors_in(result), tensors_in(again), strict=True):
                if old.untyped_storage().data_ptr() not in places:
                    old.copy_(new)


def tensors_in(tree):
    leaves = torch.utils._pytree.tree_leaves(tree)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and not leaf.is_mkldnn]


class TapeRecorder(GraphRecorder):
    """Does on a CPU what CUDA graphs do on a GPU."""

    def __init__(self, *, fails=False):
        super().__init__(torch.device("cpu"))
        self.fails, self.warm_ups, self.recordings, self.replays = fails, 0, 0, 0

    def warm_up(self, work, *, last):
        self.warm_ups += 1
        return work()

    def _capture(self, work):
        if self.fails:
            raise RuntimeError("CUDA error: out of memory\nsome more")
        self.recordings += 1
        tape = Tape()
        with tape:
            result = work()

        def replay():
            self.replays += 1
            tape.play()
            return result

        return replay


@pytest.fixture(scope="session", name="make_recorder")
def _make_recorder():
    return TapeRecorder


@pytest.fixture(scope="session", name="make_tape")
def _make_tape():
    return Tape
