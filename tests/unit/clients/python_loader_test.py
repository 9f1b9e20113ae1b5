"""Loaders of attune.torch.prepare_data_loader, without processes: the ranks of a gang take turns in this one.

    scripts/python_torch.py python3 python_loader_test.py

Skipped where this Python has no torch.
"""

import collections
import contextlib
import io
import pathlib
import random
import sys
import unittest
from unittest import mock

try:
    import torch
    from torch.utils.data import (BatchSampler, DataLoader, DistributedSampler, IterableDataset, RandomSampler, Sampler,
                                  SequentialSampler, SubsetRandomSampler, WeightedRandomSampler)
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "clients/python"))
from attune import _loader, _trial  # noqa: E402

NUMBERS = list(range(12))


def ranks(world_size, use, step=0, seed=7):
    """Returns the result of `use(make)` on each rank of a gang. `make(…)` returns a prepared DataLoader(…)."""
    def make(data=NUMBERS, kind=DataLoader, **options):
        return _loader.prepare(kind(data, **options), torch.device("cpu"))

    found = []
    for rank in range(world_size):
        trial = _trial.Trial({"rank": rank, "world_size": world_size, "seed": seed, "resume": {"step": step}}, None)
        with mock.patch.object(_trial, "_trial", trial):
            found.append(use(make))
    return found


def numbers(loader, batches=None):
    """Returns the samples of a pass, or of its first batches."""
    found = []
    for batch in loader:
        found.append(batch)
        if batches is not None and len(found) == batches:
            break
    return torch.cat([batch.reshape(-1) for batch in found]).tolist() if found else []


def in_turn(shares):
    """Returns the samples of a gang with equal shares, in the order in which it takes them."""
    return [number for each in zip(*shares) for number in each]


def stopped(loader, batches):
    """Returns the samples of the first batches of a pass, and the state after them."""
    passing = iter(loader)
    taken_samples = [number for _ in range(batches) for number in next(passing).tolist()]
    return taken_samples, loader.state_dict()


class Counting(IterableDataset):
    """Numbers, with its position as its state."""

    def __init__(self):
        self.position = self.drawn = self.epoch = 0

    def __iter__(self):
        while self.position < len(NUMBERS):
            self.position += 1
            self.drawn += 1
            yield self.position - 1
        self.position = 0

    def set_epoch(self, epoch):
        self.epoch = epoch


class Stateful(Counting):
    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = state["position"]


class EpochSampler(Sampler):
    """A user's sampler, which draws with Python's random and has set_epoch()."""

    def __init__(self):
        self.epochs = []

    def set_epoch(self, epoch):
        self.epochs.append(epoch)

    def __len__(self):
        return len(NUMBERS)

    def __iter__(self):
        return iter(random.sample(NUMBERS, len(NUMBERS)))


class Order(unittest.TestCase):
    def test_keeps_the_class_of_the_loader(self):
        class Subclass(DataLoader):
            pass

        [[loader, again]] = ranks(1, lambda make: (lambda loader: [loader, _loader.prepare(loader, "cpu")])(
            make(kind=Subclass, batch_size=4)))
        self.assertIsInstance(loader, Subclass)
        self.assertIsInstance(loader.sampler, DistributedSampler)
        self.assertIs(loader, again)
        self.assertEqual((loader.batch_size, len(loader)), (4, 3))

    def test_set_epoch_of_the_sampler_and_of_the_loader_count(self):
        def use(make):
            loader, taken_samples = make(shuffle=True, batch_size=3), []
            for epoch in (5, 5, 0, None):
                if epoch is not None:
                    loader.sampler.set_epoch(epoch)
                taken_samples.append(numbers(loader))
            loader.set_epoch(5)
            return [*taken_samples, numbers(loader)]

        for size in (1, 2):
            five, again, zero, one, last = (in_turn(shares) for shares in zip(*ranks(size, use)))
            self.assertTrue(five == again == last)
            self.assertEqual(len({tuple(five), tuple(zero), tuple(one)}), 3)
            self.assertEqual(sorted(zero), NUMBERS)

    def test_comes_from_the_seed_and_the_epoch_alone(self):
        def order(size=1, use=lambda make: numbers(make(shuffle=True)), **start):
            torch.manual_seed(size)
            return in_turn(ranks(size, use, **start))

        def second_pass(make):
            loader = make(shuffle=True)
            numbers(loader, batches=2)  # an interrupted pass counts as a pass
            return numbers(loader)

        self.assertEqual(order(), order(size=2))
        self.assertEqual(order(use=second_pass), order(step=1))
        self.assertNotEqual(order(), order(step=1))
        self.assertNotEqual(order(), order(seed=8))

    def test_draws_by_other_samplers_are_the_same_on_all_ranks_and_share_all(self):
        generator = torch.Generator().manual_seed(1)
        for make_sampler, drawn in (
                (lambda: WeightedRandomSampler([1, 0] * 6, 12), {0, 2, 4, 6, 8, 10}),
                (lambda: WeightedRandomSampler([1.0] * 12, 12, replacement=False, generator=generator), set(NUMBERS)),
                (lambda: RandomSampler(NUMBERS, replacement=True, num_samples=12), set(NUMBERS)),
                (lambda: SubsetRandomSampler([3, 4, 5, 6]), {3, 4, 5, 6}),
                (EpochSampler, set(NUMBERS)),
                (lambda: [5, 1, 5, 2], {1, 2, 5})):
            torch.manual_seed(0)
            uninterrupted = in_turn(ranks(1, lambda make: numbers(make(sampler=make_sampler()))))
            torch.manual_seed(1)
            self.assertEqual(uninterrupted, in_turn(ranks(2, lambda make: numbers(make(sampler=make_sampler())))))
            self.assertLessEqual(set(uninterrupted), drawn)

    def test_does_not_change_the_generators_of_the_program(self):
        own_sampler = WeightedRandomSampler([1.0] * 12, 12, generator=torch.Generator().manual_seed(1))
        before = torch.get_rng_state(), random.getstate(), own_sampler.generator.get_state()
        generator = own_sampler.generator
        ranks(1, lambda make: numbers(make(sampler=own_sampler, generator=torch.Generator())))  # torch draws seeds of workers
        self.assertIs(own_sampler.generator, generator)
        self.assertTrue(torch.equal(generator.get_state(), before[2]))
        self.assertTrue(torch.equal(torch.get_rng_state(), before[0]))
        self.assertEqual(random.getstate(), before[1])

    def test_tells_a_sampler_of_the_epoch(self):
        own_sampler = EpochSampler()
        ranks(1, lambda make: (lambda loader: [numbers(loader), numbers(loader)])(make(sampler=own_sampler)), step=3)
        self.assertEqual(own_sampler.epochs, [3, 4])

    def test_a_distributed_sampler_of_the_program_keeps_its_epochs(self):
        def use(make):
            own_sampler = DistributedSampler(NUMBERS, _trial.current().world_size, _trial.current().rank, seed=1)
            loader, taken_samples = make(sampler=own_sampler), []
            for epoch in (5, 5, 0):
                own_sampler.set_epoch(epoch)
                taken_samples.append(numbers(loader))
            loader.set_epoch(5)
            return [*taken_samples, numbers(loader), list(own_sampler), loader.sampler is own_sampler]

        for five, again, zero, last, alone, is_own in ranks(2, use):
            self.assertTrue(five == again == last == alone)
            self.assertNotEqual(five, zero)
            self.assertTrue(is_own)

    def test_a_batch_sampler_is_shared_by_batches(self):
        def batches(drop_last, count):
            return ranks(2, lambda make: [batch.tolist() for batch in make(
                batch_sampler=BatchSampler(SequentialSampler(range(count)), 3, drop_last))])

        self.assertEqual(batches(False, 12), [[[0, 1, 2], [6, 7, 8]], [[3, 4, 5], [9, 10, 11]]])
        self.assertEqual(batches(False, 8), [[[0, 1, 2], [6, 7]], [[3, 4, 5], [0, 1, 2]]])
        self.assertEqual(batches(True, 11), [[[0, 1, 2]], [[3, 4, 5]]])
        random_batches = ranks(2, lambda make: numbers(make(
            batch_sampler=BatchSampler(RandomSampler(NUMBERS), 3, False))))
        self.assertEqual(sorted(sum(random_batches, [])), NUMBERS)

    def test_a_batch_sampler_over_a_distributed_sampler_is_a_share_already(self):
        def use(make):
            share = DistributedSampler(NUMBERS, 2, _trial.current().rank, shuffle=True)
            loader = make(batch_sampler=BatchSampler(share, 3, False))
            loader.sampler.set_epoch(4)
            return share.epoch, numbers(loader)

        (epoch, one), (_, two) = ranks(2, use)
        self.assertEqual((epoch, sorted(one + two)), (4, NUMBERS))

    def test_refuses_a_sampler_without_length_for_several_ranks(self):
        class Endless(Sampler):
            def __init__(self):
                pass

            def __iter__(self):
                return iter(NUMBERS)

        self.assertEqual(ranks(1, lambda make: numbers(make(sampler=Endless()))), [NUMBERS])
        with self.assertRaisesRegex(ValueError, r"\bEndless\b"):
            ranks(2, lambda make: make(sampler=Endless()))

    def test_workers_see_the_same_order(self):
        def use(make):
            loader = make(shuffle=True, batch_size=2, num_workers=1, persistent_workers=True)
            return [numbers(loader), numbers(loader)]

        [[first, second]] = ranks(1, use)
        self.assertEqual(ranks(1, lambda make: numbers(make(shuffle=True))), [first])
        self.assertEqual(ranks(1, lambda make: numbers(make(shuffle=True)), step=1), [second])


class Moving(unittest.TestCase):
    def moved(self, batch):
        return _loader._to_device(batch, torch.device("meta"), False)

    def test_keeps_the_types_of_containers_and_their_attributes(self):
        class Named(dict):
            def __init__(self, name):
                self.name = name

        class Sized(list):
            def __init__(self, size, parts):
                super().__init__(parts)
                self.size = size

        pair = collections.namedtuple("pair", "first second")
        named, sized = Named("a batch"), Sized(2, [torch.ones(1), 5])
        named["x"], named["deep"] = torch.ones(1), sized
        counted = collections.defaultdict(int, x=torch.ones(1))
        moved = self.moved(pair(named, counted))
        self.assertEqual((type(moved), type(moved.first), moved.first.name), (pair, Named, "a batch"))
        deep = moved.first["deep"]
        self.assertEqual((type(deep), deep.size, deep[1]), (Sized, 2, 5))
        for tensor in moved.first["x"], deep[0], moved.second["x"]:
            self.assertEqual(tensor.device.type, "meta")
        self.assertEqual(moved.second["new"], 0)
        self.assertEqual((named["x"].device.type, sized[0].device.type), ("cpu", "cpu"), "the batch is left alone")

    def test_gives_plain_containers_for_types_that_refuse_parts(self):
        class Fixed(dict):
            def __setitem__(self, name, part):
                raise TypeError("is fixed")

        class Two(tuple):
            def __new__(cls, first, second):
                return super().__new__(cls, (first, second))

        for batch, plain in (Fixed(x=torch.ones(1)), dict), (Two(torch.ones(1), 5), tuple):
            self.assertIs(type(self.moved(batch)), plain)


class Resuming(unittest.TestCase):
    """Passes that resume within an epoch."""

    def check_gangs(self, old, new, taken, **options):
        """A gang of `old` ranks takes `taken` samples, and one of `new` ranks takes the rest of the epoch."""
        def begin(make):
            loader = make(**options)
            loader.set_epoch(3)
            return stopped(loader, taken // (old * loader.batch_size))

        begun = ranks(old, begin)
        states = [state for _, state in begun]
        self.assertEqual(states, [{"epoch": 3, "taken": taken}] * old)

        def resume(make):
            loader = make(**options)
            loader.load_state_dict(states[0])
            loader.sampler.set_epoch(3)  # as a program does before each pass
            rest = numbers(loader)
            return rest, loader.state_dict(), numbers(loader)

        resumed = ranks(new, resume)
        taken_samples = in_turn([taken_samples for taken_samples, _ in begun]) + in_turn([rest for rest, *_ in resumed])
        uninterrupted = ranks(1, lambda make: numbers(make(**options)), step=3)[0]
        following = ranks(1, lambda make: numbers(make(**options)), step=4)[0]
        self.assertEqual(sorted(taken_samples), NUMBERS)
        self.assertEqual(set(taken_samples[:taken]), set(uninterrupted[:taken]))
        self.assertEqual(resumed[0][1], {"epoch": 4, "taken": 0})
        self.assertEqual(in_turn([after for *_, after in resumed]), following)

    def test_in_gangs_of_other_sizes(self):
        for old, new, taken in ((1, 2, 4), (2, 1, 8), (2, 3, 0), (3, 3, 6), (1, 1, 12), (2, 4, 4)):
            with self.subTest(old=old, new=new):
                self.check_gangs(old, new, taken, shuffle=True, batch_size=2)

    def test_by_batches_of_a_batch_sampler(self):
        def loader(make):
            return make(batch_sampler=BatchSampler(RandomSampler(NUMBERS), 2, False))

        def resume(make):
            following = loader(make)
            following.load_state_dict(state)
            return numbers(following)

        (one, state), (two, _) = ranks(2, lambda make: stopped(loader(make), 1))
        self.assertEqual(state, {"epoch": 0, "taken": 2})
        self.assertEqual(sorted(one + two + ranks(1, resume)[0]), NUMBERS)

    def test_another_epoch_starts_at_its_beginning(self):
        def use(make):
            loader = make(shuffle=True)
            loader.load_state_dict({"epoch": 3, "taken": 5})
            loader.sampler.set_epoch(4)
            return len(numbers(loader))

        self.assertEqual(ranks(1, use), [12])

    def test_refuses_a_wrong_state(self):
        for state in ({}, None, {"epoch": "x", "taken": 0}):
            with self.assertRaisesRegex(ValueError, r"^state is .*state_dict\(\)"):
                ranks(1, lambda make: make().load_state_dict(state))

    def resume(self, first, second, batches, **options):
        """Lets one rank resume within an epoch, and returns what it prints."""
        [(taken_samples, state)] = ranks(1, lambda make: stopped(make(first, batch_size=2, **options), batches))

        def use(make):
            loader = make(second, batch_size=2, **options)
            loader.load_state_dict(state)
            return taken_samples + numbers(loader), numbers(loader)

        stderr_text = io.StringIO()
        with contextlib.redirect_stderr(stderr_text):
            [(uninterrupted, after)] = ranks(1, use)
        self.assertEqual((uninterrupted, after), (NUMBERS, NUMBERS))
        return stderr_text.getvalue()

    def test_an_iterable_with_a_state_loads_no_batch_twice(self):
        data = Stateful()
        self.assertEqual(self.resume(Stateful(), data, 2), "")
        self.assertEqual(data.drawn, 8 + 12)

    def test_an_iterable_without_a_state_drops_batches_and_warns_once(self):
        data = Counting()
        self.assertIn("2 batches", stderr_text := self.resume(Counting(), data, 2))
        self.assertEqual(stderr_text.count("attune:"), 1)
        self.assertEqual(data.drawn, 12 + 12)

    def test_workers_have_the_state_of_an_iterable(self):
        self.assertIn("drops them", self.resume(Stateful(), Stateful(), 2, num_workers=1))

    def test_a_loader_with_a_state_has_that_of_its_workers(self):
        class StatefulLoader(DataLoader):  # for example, the one of torchdata
            def state_dict(self):
                return {"mine": 4}

            def load_state_dict(self, state):
                self.dataset.position = state["mine"]

        data = Counting()
        self.assertEqual(self.resume(Counting(), data, 2, kind=StatefulLoader, num_workers=0), "")
        self.assertEqual(data.drawn, 8 + 12)

    def test_a_stream_in_another_gang_drops_the_same_number_of_batches(self):
        (_, state), _ = ranks(2, lambda make: stopped(make(Counting(), batch_size=2), 2))

        def use(make):
            loader = make(Counting(), batch_size=2)
            loader.load_state_dict(state)
            return numbers(loader)

        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(ranks(1, use), [NUMBERS[8:]])

    def test_only_the_program_sets_the_epoch_of_a_stream(self):
        data = Counting()

        def use(make):
            loader = make(data)
            untold = numbers(loader), numbers(loader), data.epoch
            loader.sampler.set_epoch(4)
            return untold[2], data.epoch

        self.assertEqual(ranks(1, use), [(0, 4)])


if __name__ == "__main__":
    unittest.main()
