"""Runs blocks of docs/reference/python.md by hand, without a server. tests/e2e runs the other sections."""

import sys
import unittest

from rank import PACKAGE, Client

ROOT = PACKAGE.parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import markdown_pages as markdown  # noqa: E402


def blocks_of(heading):
    """Returns the Python blocks in a section of docs/reference/python.md."""
    return markdown.code((ROOT / "docs/reference/python.md").read_text(), "python", heading=heading)


class Page(Client):
    def test_blocks_of_the_page_run(self):
        report, log = blocks_of("Report from a script")
        resume, folder = blocks_of("Save and resume")
        [share] = blocks_of("Elastic gangs")
        [handler] = blocks_of("Clean up before the end")
        run = self.by_hand("train = lambda lr, width: lr / width\n" + report + "model, epoch = None, 11\n" + resume)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("step 11  loss=0.003125", run.stdout)
        run = self.by_hand("import tempfile\n"
                           "from types import SimpleNamespace as Thing\n"
                           "torch = Thing(save=lambda state, path: open(path, 'w').close())\n"
                           "model, loss, epoch = Thing(state_dict=dict), 1, 3\n" + folder)
        self.assertEqual(run.stdout, "step 3  loss=1\n", run.stderr)
        run = self.by_hand("train_batch, loader, epoch = float, range(200), 3\nif True:\n" + log)
        self.assertEqual(run.stdout, "at step 2  batch_loss=0\nat step 2.5  batch_loss=100\n", run.stderr)
        # A fake torch: each rank takes its part of the batch.
        run = self.by_hand("from types import SimpleNamespace as Thing\n"
                           "generator = Thing(manual_seed=lambda seed: None)\n"
                           "torch = Thing(randperm=lambda count, generator: list(range(count)),\n"
                           "              Generator=lambda: generator)\n"
                           "data, epoch, seen, batch_size = range(20), 1, 8, 6\n"
                           "attune.init({})\n" + share + "print(batch)", RANK="1", WORLD_SIZE="2", LOCAL_RANK="1")
        self.assertEqual(run.stdout, "[9, 11, 13]\n", run.stderr)
        run = self.by_hand("import os\n" + handler + "try:\n"
                           "    os.kill(os.getpid(), signal.SIGTERM)\n"
                           "finally:\n"
                           "    print('cleaned up')\n")
        self.assertEqual((run.returncode, run.stdout), (0, "cleaned up\n"), run.stderr)


if __name__ == "__main__":
    unittest.main()
