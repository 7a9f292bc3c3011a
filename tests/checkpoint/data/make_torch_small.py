"""Made torch_small.pt and torch_small_p4.pt, once, with torch 2.13 (kept so that they can be made again)."""

from collections import OrderedDict
from pathlib import Path

import torch

HERE = Path(__file__).parent
base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
layer = torch.nn.utils.weight_norm(torch.nn.Conv1d(2, 3, 3))
with torch.no_grad():
    for i, parameter in enumerate(layer.parameters()):
        parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) / 8 + i)
tree = {
    "state": layer.state_dict(),  # an OrderedDict with _metadata
    "views": {"whole": base, "transposed": base.t(), "row": base[2], "strided": base[1:, ::2]},
    "types": OrderedDict(
        (str(kind).removeprefix("torch."), torch.tensor([0, 1, 2, 3]).to(kind))
        for kind in (
            torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16,
            torch.int8, torch.uint8, torch.bool,
        )
    ),
    "parameter": torch.nn.Parameter(torch.ones(2)),
    "scalar": torch.tensor(2.5),
    "empty": torch.zeros(0, 3),
    "plain": {"step": 70000, "rate": 0.5, "name": "höhe", "none": None, "flags": [True, False], "pair": (1, -2)},
}  # fmt: skip
torch.save(tree, HERE / "torch_small.pt")
torch.save(tree, HERE / "torch_small_p4.pt", pickle_protocol=4)
