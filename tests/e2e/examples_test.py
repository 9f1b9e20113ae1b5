"""The programs of examples/ with small settings and without a server, and their sweep files."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import ATTUNE, BUILD, PATIENCE_S, ROOT

FASHION_MNIST_DATA = pathlib.Path(os.environ.get("ATTUNE_DATA_DIR",
                                                 "/usr/share/datasets/fashion-mnist"))
needs_images = unittest.skipUnless(
    (FASHION_MNIST_DATA / "train-images-idx3-ubyte.gz").exists(),
    f"no Fashion-MNIST in {FASHION_MNIST_DATA}: install dataset-fashion-mnist")


def numbers(text, name):
    """Returns the values of a metric, in the order of the lines."""
    return [float(value) for value in re.findall(rf"\b{name} (\S+)", text)]


class Examples(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="attune-examples-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        # Threads that spin while they wait are very slow on busy cores.
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"),
                                OMP_NUM_THREADS="1")

    def run_example(self, program, *args):
        """Runs `program`, which is FOLDER/PROGRAM, and returns its output."""
        done = subprocess.run([BUILD / "examples" / program, *map(str, args)], cwd=self.folder,
                              env=self.environment, capture_output=True, text=True,
                              timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr


class Lines(Examples):
    def test_linear_finds_the_line(self):
        printed = self.run_example("linear/linear")
        slope, intercept = map(float, re.search(r"y = (\S+) x \+ (\S+)", printed).groups())
        self.assertAlmostEqual(slope, 2, delta=0.1)
        self.assertAlmostEqual(intercept, 5, delta=0.1)


class Tour(Examples):
    def test_random_numbers_differ_by_rank_and_step_and_repeat_after_a_resume(self):
        def drops(*args):
            printed = self.run_example("tour/tour", "--workers", 2, "--max-step", 4, *args)
            return {(int(rank), int(step)): drawn for rank, step, drawn in
                    re.findall(r"^rank (\d): step (\d) drops (.+)$", printed, re.M)}
        uninterrupted = drops("--checkpoint-dir", self.folder / "saved", "--checkpoint-every", 2)
        self.assertEqual(len(set(uninterrupted.values())), 8)
        rest = drops("--resume", self.folder / "saved/step-2-attempt-1")
        self.assertEqual(rest, {key: drawn for key, drawn in uninterrupted.items() if key[1] > 2})

    def test_shows_streams_weights_sparse_gradients_and_folders(self):
        printed = self.run_example("tour/tour", "--workers", 2, "--max-step", 1)
        self.assertIn("rank 1: lines 1 3\n", printed)
        self.assertIn("rank 0: after 4 lines 4 6\n", printed)
        self.assertIn("rank 0: touched 4.000000 rows", printed)
        self.assertIn("in step-1-attempt-1", printed)
        drawn = float(re.search(r"drew class 1 in (\S+)", printed)[1])
        self.assertGreater(drawn, 30)  # of 100; the expected number is 50

    def test_drivers_exchange_messages_with_workers(self):
        printed = self.run_example("tour/tour_drivers")
        self.assertRegex(printed, r"\b32 samples\b")
        self.assertRegex(printed, r"\b2 workers\b.*\b32 and 32\b")
        self.assertRegex(printed, r"\b2 counters\b.*\b5\b")


@needs_images
class Images(Examples):
    def test_function_api_learns(self):
        accuracy = numbers(self.run_example("function_api/function_api", "--config", "lr=0.05",
                                            "--workers", 2, "--max-step", 3), "accuracy")
        self.assertEqual(len(accuracy), 3)
        self.assertGreater(accuracy[-1], max(0.5, accuracy[0]))

    def test_function_api_single_learns(self):
        accuracy = numbers(self.run_example("function_api/function_api_single"), "accuracy")
        self.assertEqual(len(accuracy), 5)
        self.assertGreater(accuracy[-1], max(0.5, accuracy[0]))

    def test_tune_trainer_is_a_trial(self):
        printed = self.run_example("tune_trainer/tune_trainer", "--config",
                                   "lr=0.05,momentum=0.9,width=8,samples=1500", "--workers", 2,
                                   "--max-step", 3)
        accuracy = numbers(printed, "val_accuracy")
        self.assertEqual(len(accuracy), 3)
        self.assertGreater(accuracy[-1], 0.5)
        self.assertLess(numbers(printed, "train_loss")[-1], numbers(printed, "train_loss")[0])

    def test_tune_trainer_trains_alone(self):
        printed = self.run_example("tune_trainer/tune_trainer", "--alone")
        self.assertGreater(numbers(printed, "val_accuracy")[-1], 0.7)
        self.assertTrue(pathlib.Path(self.folder, re.search(r"^saved (.+)$", printed, re.M)[1],
                                     "model.safetensors").exists())


class Cifar10(Examples):
    def write_images(self):
        """Writes files in the format of CIFAR-10 with few images: dark ones of class 0, bright ones of class 1."""
        folder = self.folder / "data" / "cifar-10-batches-bin"
        folder.mkdir(parents=True)
        for number in range(1, 6):
            (folder / f"data_batch_{number}.bin").write_bytes(b"".join(
                bytes([i % 2]) + bytes([60 + 120 * (i % 2) + number + i % 7]) * 3072
                for i in range(24)))
        self.environment["ATTUNE_DATA_DIR"] = str(self.folder / "data")

    CONFIG = "lr=0.01,width=4,batch_size=16"

    def test_learns_from_the_standard_files(self):
        self.write_images()
        printed = self.run_example("cifar10/cifar10", "--config", self.CONFIG, "--workers", 2,
                                   "--max-step", 4)
        self.assertNotIn("Fashion-MNIST", printed)
        self.assertGreater(max(numbers(printed, "val_accuracy")), 0.9)
        self.assertEqual(max(numbers(printed, "val_top5_accuracy")), 1)

    def test_uses_the_same_crops_after_a_resume(self):
        self.write_images()
        args = ["--config", self.CONFIG, "--workers", 2, "--max-step", 3]
        uninterrupted = self.run_example("cifar10/cifar10", *args, "--checkpoint-dir", "kept",
                                         "--checkpoint-every", 1)
        second = next(self.folder.glob("kept/step-2-*"))
        resumed = self.run_example("cifar10/cifar10", *args, "--resume", second)
        self.assertEqual(numbers(resumed, "train_loss"), numbers(uninterrupted, "train_loss")[2:])

    @needs_images
    def test_falls_back_to_fashion_mnist_and_says_so_once(self):
        printed = self.run_example("cifar10/cifar10", "--alone", "--images", 256)
        self.assertEqual(printed.count("on Fashion-MNIST instead"), 1, printed)
        self.assertEqual(len(numbers(printed, "val_accuracy")), 3)

    def test_download_needs_a_folder(self):
        self.environment.pop("ATTUNE_DATA_DIR", None)
        done = subprocess.run([BUILD / "examples/cifar10/cifar10", "--alone", "--download"],
                              env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("set ATTUNE_DATA_DIR", done.stderr)


@needs_images
class Dcgan(Examples):
    def test_generates_images_that_a_classifier_distinguishes(self):
        args = ["--config", "lr=0.001,width=8,samples=1280,classifier_samples=6400"]
        printed = self.run_example("dcgan/dcgan", *args, "--workers", 2, "--max-step", 3,
                                   "--checkpoint-dir", "kept")
        self.assertEqual(len(re.findall(r"^dcgan: .*\bclassifier\b", printed, re.M)), 1, printed)
        scores = numbers(printed, "inception_score")
        self.assertEqual(len(scores), 3)
        self.assertTrue(all(1 <= score <= 10 for score in scores), scores)
        self.assertGreater(scores[-1], scores[0])
        self.assertGreater(numbers(printed, "generator_loss")[-1], 0)

        # No second classifier is trained, and one worker gives images of the same quality.
        checkpoint = next(self.folder.glob("kept/step-3-*"))
        again = self.run_example("dcgan/dcgan", *args, "--max-step", 1)
        self.assertNotRegex(again, r"(?m)^dcgan: .*\bclassifier\b")
        self.run_example("dcgan/dcgan", "--from", checkpoint, "--samples", "grid.pgm")
        self.check_grid(self.folder / "grid.pgm")

        classifier = next(self.folder.glob("cache/attune-dcgan/*/step-1-*"))
        self.run_example("dcgan/dcgan", "--alone", "--images", 256, "--classifier", classifier,
                         "--samples", "alone.pgm")
        self.check_grid(self.folder / "alone.pgm")

    def check_grid(self, file):
        header, pixels = file.read_bytes().split(b"\n255\n", 1)
        self.assertEqual(header, b"P5\n224 224")
        self.assertEqual(len(pixels), 224 * 224)
        self.assertGreater(len(set(pixels)), 10)


class SweepFiles(unittest.TestCase):
    def test_sweep_files_of_every_example_are_valid(self):
        files = sorted((ROOT / "examples").glob("*/sweep*.yaml"))
        self.assertGreaterEqual(len(files), 7)
        for file in files:
            with self.subTest(file=file.parent.name):
                done = subprocess.run([ATTUNE, "sweep", "validate", file], capture_output=True,
                                      text=True)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
