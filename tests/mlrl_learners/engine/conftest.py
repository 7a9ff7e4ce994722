"""Emulation of CUDA graphs: operations are recorded and replayed on a CPU."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from mlrl_learners.engine import module_reader, static_reader
from mlrl_learners.engine.cuda_graphs import GraphRecorder
from mlrl_learners.engine.sampling import FirstDraw


class Tape(TorchDispatchMode):
    """Records operations and their tensors; changes are undone at the end."""

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
        """Repeat the operations on the same memory, without running Python code again."""
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
    """Records and replays on a CPU as CUDA graphs do on a GPU; counts steps and draws apart."""

    def __init__(self, *, fails=False, fails_to_draw=False):
        super().__init__(torch.device("cpu"))
        self.fails, self.warm_ups, self.recordings, self.replays = fails, 0, 0, 0
        self.fails_to_draw, self.draws = fails_to_draw, 0

    def warm_up(self, work, *, last):
        self.warm_ups += 1
        return work()

    def _capture(self, work):
        if self.fails:
            raise RuntimeError("CUDA error: out of memory\nsome more")
        tape = Tape()
        with tape:
            result = work()
        is_draw = isinstance(result, FirstDraw)
        if is_draw and self.fails_to_draw:
            raise RuntimeError("CUDA error: out of memory")
        self.recordings += not is_draw

        def replay():
            self.replays += not is_draw
            self.draws += is_draw
            tape.play()
            return result

        return replay


@pytest.fixture(scope="session", name="make_recorder")
def _make_recorder():
    return TapeRecorder


@pytest.fixture(scope="session", name="make_tape")
def _make_tape():
    return Tape


@pytest.fixture
def small_room(monkeypatch):
    """Room for so few tokens that steps are built anew several times."""
    monkeypatch.setattr(static_reader, "ROOM_TOKENS", static_reader.RECORDED_STEPS)


@pytest.fixture
def rare_looks(monkeypatch):
    """Look for rows that have ended as rarely as on a GPU."""
    monkeypatch.setattr(static_reader, "look_steps", lambda device: 8)
    monkeypatch.setattr(module_reader, "look_steps", lambda device: 8)
