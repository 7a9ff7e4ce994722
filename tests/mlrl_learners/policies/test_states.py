import pytest
import torch
from torch import nn

from mlrl_learners.errors import CheckpointError
from mlrl_learners.policies.states import restore


def saved(path):
    torch.save(nn.Linear(8, 8).state_dict(), path)
    return path


def test_what_was_saved_is_taken(tmp_path):
    layer = nn.Linear(8, 8)
    restore(saved(tmp_path / "x.pt"), layer.load_state_dict)
    assert torch.equal(layer.weight, torch.load(tmp_path / "x.pt")["weight"])


@pytest.mark.parametrize("damage", ["missing", "empty", "junk", "half"])
def test_a_damaged_file_is_one_typed_error(tmp_path, damage):
    path = saved(tmp_path / "x.pt")
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "junk": b"\x00junk" * 99, "half": content[:99]}[damage])
    with pytest.raises(CheckpointError, match="is missing, damaged or another's"):
        restore(path, nn.Linear(8, 8).load_state_dict)


def test_the_reason_is_not_that_of_torch_which_advises_to_run_code(tmp_path):
    path = tmp_path / "x.pt"
    path.write_text("garbage")
    with pytest.raises(CheckpointError, match="another's: it is not a whole file of torch"):
        restore(path, nn.Linear(8, 8).load_state_dict)


def test_a_state_of_something_else_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="another's"):
        restore(saved(tmp_path / "x.pt"), nn.Linear(3, 3).load_state_dict)
