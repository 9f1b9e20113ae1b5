"""attune.torch's prepare_model and prepare_data_loader, alone and in gangs of two.

Skipped where Python has no torch: neither its own nor the one of scripts/setup.
"""

import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support import EndToEnd, PATIENCE_S, ROOT, free_port, sweep  # noqa: E402
from torch_environment import ENVIRONMENT, main, markdown  # noqa: E402

SCRIPT = ROOT / "tests/e2e/programs/prepared_script.py"
NUMBERS = list(range(10))


def facts_of_a_gang(world_size):
    """Runs the script like torchrun. Returns the results of each rank."""
    port = str(free_port())
    ranks = [subprocess.Popen(
        [sys.executable, SCRIPT], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**ENVIRONMENT, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world_size),
             "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo",
             "PYTHONWARNINGS": "ignore"})
        for rank in range(world_size)]
    said = [rank.communicate(timeout=PATIENCE_S)[1] for rank in ranks]
    for rank, err in zip(ranks, said):
        if rank.returncode != 0:
            raise AssertionError(err)
    return [json.loads(err.splitlines()[-1]) for err in said]


def flat(batches):
    return [number for batch in batches for number in batch]


class GangOfTwo(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ranks = facts_of_a_gang(2)

    def shares(self, name, *place):
        """Returns all samples that each rank has seen, in order."""
        found = [rank[name] for rank in self.ranks]
        for each in place:
            found = [share[each] for share in found]
        return [flat(share) for share in found]

    def test_creates_the_process_group(self):
        self.assertEqual([rank["world_size"] for rank in self.ranks], [2, 2])

    def test_all_ranks_have_the_same_model_and_the_mean_gradient(self):
        one, two = self.ranks
        self.assertEqual((one["model"], one["is_bare"]), ("DistributedDataParallel", False))
        self.assertNotEqual(one["own_weight"], two["own_weight"])
        self.assertEqual([one["weight"], two["weight"]], [one["own_weight"]] * 2)
        self.assertEqual([one["gradient"], two["gradient"]], [1.5, 1.5])

    def test_in_each_epoch_one_rank_has_each_sample(self):
        for epoch in (0, 1):
            one, two = self.shares("shuffled", epoch)
            self.assertEqual(sorted(one + two), NUMBERS)
        self.assertEqual((self.ranks[0]["length"], self.ranks[0]["batch_size"]), (3, 2))

    def test_each_pass_is_another_epoch(self):
        self.assertNotEqual(self.shares("shuffled", 0), self.shares("shuffled", 1))
        self.assertEqual(self.shares("epoch_3", 0), self.shares("after_step_3"))
        self.assertNotEqual(self.shares("epoch_3", 0), self.shares("epoch_3", 1))

    def test_keeps_the_order_of_a_loader_without_shuffling(self):
        self.assertEqual(self.shares("in_order"), [NUMBERS[0::2], NUMBERS[1::2]])
        self.assertEqual([rank["singly"] for rank in self.ranks], [NUMBERS[0::2], NUMBERS[1::2]])
        self.assertEqual(self.shares("by_workers"), [NUMBERS[0::2], NUMBERS[1::2]])

    def test_drops_the_last_samples_or_uses_some_twice(self):
        self.assertEqual(self.shares("odd"), [[0, 2, 4, 6, 8], [1, 3, 5, 7, 0]])
        self.assertEqual(self.shares("odd_dropped"), [[0, 2, 4, 6], [1, 3, 5, 7]])

    def test_does_not_divide_a_share_again(self):
        self.assertTrue(all(rank["own_share"] for rank in self.ranks))
        self.assertEqual(self.shares("stream"), [NUMBERS, NUMBERS])

    def test_divides_the_samples_of_any_sampler(self):
        one, two = self.shares("drawn")
        self.assertEqual(sorted(one + two), NUMBERS)


class GangOfOne(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        [cls.rank] = facts_of_a_gang(1)

    def test_does_not_wrap_the_model_and_has_all_samples(self):
        self.assertEqual((self.rank["model"], self.rank["is_bare"]), ("Linear", True))
        self.assertEqual(flat(self.rank["in_order"]), NUMBERS)

    def test_has_a_process_group_like_any_other(self):
        self.assertEqual(self.rank["world_size"], 1)

    def test_moves_batches_of_every_type_to_the_device(self):
        self.assertEqual(self.rank["kinds"], ["dict", "Pair", "cpu", "text"])
        self.assertEqual(self.rank["moved"], ["meta", "meta", "text"])


class Page(EndToEnd):
    def test_its_blocks_train_and_resume_in_a_gang(self):
        self.environment.update(ENVIRONMENT)
        page = ROOT / "docs/reference/python.md"
        blocks = markdown.code(page.read_text(), "python", heading="Data parallel with torch")
        self.assertIn("load_state_dict", blocks[1])
        script = self.write("import torch\nfrom torch.utils.data import DataLoader\n"
                            "import attune\n"
                            "config = attune.init()\n"
                            "data = torch.arange(64.0).view(64, 1)\n"
                            "def Network(width):\n"
                            "    layer = torch.nn.Linear(1, 1)\n"
                            "    torch.nn.init.constant_(layer.weight, width)\n"
                            "    return layer\n" + "".join(blocks) +
                            "sgd = torch.optim.SGD(model.parameters(), 1e-5)\n"
                            "for step in range(attune.step, 2):\n"
                            "    for batch in loader:\n"
                            "        sgd.zero_grad()\n"
                            "        loss = (model(batch) - batch).pow(2).mean()\n"
                            "        loss.backward()\n"
                            "        sgd.step()\n"
                            "    attune.report({'loss': loss}, checkpoint=save)\n",
                            "train.py")
        run = self.run_sweep(self.write(sweep(
            command=[sys.executable, "-m", "attune.launcher", script], metric={"name": "loss", "mode": "min"}, searcher={"name": "grid"},
            parameters={"width": {"values": [2, 9]}}, max_concurrent_trials=1, stop={"max_trials": 2},
            scheduler={"name": "asha", "min": 1, "max": 2, "reduction_factor": 2, "mode": "promote"},
            resources={"workers": 2, "cpus_per_worker": 1})), "-o", "json")
        self.assertEqual(run.wait(), 0, run.stderr)
        self.assertGreater(json.loads(run.stdout)["best"]["metrics"]["loss"], 0)
        self.assertEqual(self.rows("SELECT trial, resumed_from FROM attempts ORDER BY decided"),
                         [(0, None), (1, None), (0, 1)])  # the better trial is first, and pauses


if __name__ == "__main__":
    main()
