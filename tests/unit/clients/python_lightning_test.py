"""Lightning in a gang whose hosts have different numbers of ranks.

    scripts/python_torch.py python3 python_lightning_test.py

Skipped where this Python has no torch.
"""

import pathlib
import sys
import tempfile
import unittest
from unittest import mock

try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "clients/python"))
import pytorch_lightning  # noqa: E402

import attune.lightning  # noqa: E402
from attune import _trial  # noqa: E402
from forked_gang import Gang  # noqa: E402


class Module(pytorch_lightning.LightningModule):
    """Records the samples that it is trained with."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.trained = []

    def training_step(self, batch, _):
        self.trained += batch.flatten().tolist()
        loss = self.layer(batch).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 1e-4)


def fit():
    module, loader = Module(), torch.utils.data.DataLoader(torch.arange(12.0).view(12, 1), batch_size=2, shuffle=True)
    trainer = pytorch_lightning.Trainer(max_epochs=1, callbacks=[attune.lightning.ReportCallback()],
                                        **attune.lightning.trainer_options())
    trainer.fit(module, loader)
    return {"world_size": trainer.world_size, "trained": module.trained, "weight": module.layer.weight.item()}


class UnevenHosts(unittest.TestCase):
    PLACES = [(0, 2), (1, 2), (0, 1)]  # two ranks on one host and one on another

    def test_each_rank_trains_its_share(self):
        with tempfile.TemporaryDirectory() as folder:
            gang = Gang(self.PLACES, fit, folder)
            self.assertNotIn(None, gang.found, gang.log)
        self.assertEqual([found["world_size"] for found in gang.found], [3, 3, 3])
        self.assertEqual([len(found["trained"]) for found in gang.found], [4, 4, 4])
        self.assertEqual(sorted(sum((found["trained"] for found in gang.found), [])), list(range(12)))
        self.assertEqual(len({found["weight"] for found in gang.found}), 1)
        self.assertEqual([report["step"] for report in gang.of_type("report")], [1])

    def test_refuses_strategies_of_lightning(self):
        trial = _trial.Trial({"rank": 0, "world_size": 3, "local_world_size": 2}, None)
        with mock.patch.object(_trial, "_trial", trial):
            [environment] = attune.lightning.trainer_options()["plugins"]
            with self.assertRaisesRegex(ValueError, r"\b2 of 3\b.*resources\.placement .*one_host"):
                environment.validate_settings(num_devices=2, num_nodes=1)


if __name__ == "__main__":
    unittest.main()
