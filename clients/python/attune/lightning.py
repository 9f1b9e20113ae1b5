"""Runs Lightning's Trainer as a rank of a gang; needs `lightning` or `pytorch_lightning`.

    trainer = Trainer(max_epochs=attune.max_step or 10, callbacks=[ReportCallback()], **trainer_options())
    trainer.fit(model, data, ckpt_path=checkpoint())
"""

from __future__ import annotations

import attune._distribution  # first: it raises if pip mixed two packages

import importlib
import math
import sys
import typing

import attune

if typing.TYPE_CHECKING:
    import pathlib

__all__ = ["ReportCallback", "checkpoint", "trainer_options"]

_FILE = "lightning.ckpt"
# The classes of these two packages are not compatible. This module uses the package that the script has imported.
_PACKAGES = {"pytorch_lightning": "lightning_fabric", "lightning.pytorch": "lightning.fabric"}


def _find_package() -> str:
    for name in _PACKAGES:
        if name in sys.modules:
            return name
    try:
        importlib.import_module("lightning.pytorch")
        return "lightning.pytorch"
    except ImportError:
        return "pytorch_lightning"


_pytorch: typing.Any = importlib.import_module(_find_package())
_environments: typing.Any = importlib.import_module(_PACKAGES[_pytorch.__name__] + ".plugins.environments")


class _Environment(_environments.TorchElasticEnvironment):
    """Reads torchrun's variables, which an executor also sets. In a Slurm job, Lightning would read Slurm's instead."""

    def __init__(self, is_checked: bool = True) -> None:
        super().__init__()
        self._is_checked = is_checked

    def validate_settings(self, num_devices: int, num_nodes: int) -> None:
        if self._is_checked and num_devices * num_nodes != attune.world_size:
            raise ValueError(
                "strategy: Lightning's own strategies need the same number of ranks on each host, and "
                f"{num_devices} of {attune.world_size} ranks are here; use the strategy of trainer_options(), or set "
                "resources.placement to one_host in the sweep file")


class _Ddp(_pytorch.strategies.DDPStrategy):
    """DistributedDataParallel for the gang's ranks, also if hosts have different numbers of ranks.

    Lightning's own strategy computes the size of the gang: the devices of this host times the number of hosts.
    """

    @property
    def distributed_sampler_kwargs(self) -> dict[str, typing.Any]:
        return {"num_replicas": attune.world_size, "rank": attune.rank}

    def _configure_launcher(self) -> None:
        super()._configure_launcher()
        self._launcher.cluster_environment = _Environment(is_checked=False)


_pytorch.strategies.StrategyRegistry.register("attune_ddp", _Ddp)


def trainer_options() -> dict[str, typing.Any]:
    """Returns options that make a Trainer a rank of the gang.

    They set the gang's devices and hosts, and DistributedDataParallel over its ranks; by hand one device. They turn off
    the Trainer's logger and progress bars. If you replace `strategy` and the hosts have different numbers of ranks, the Trainer
    raises ValueError.
    """
    options: dict[str, typing.Any] = {"accelerator": "gpu" if attune.device.startswith("cuda") else "cpu",
                                      "devices": attune.local_world_size, "enable_progress_bar": False, "logger": False}
    if attune.world_size > 1:
        options.update(num_nodes=attune.world_size // attune.local_world_size, strategy="attune_ddp")
    elif attune.by_hand:
        options["accelerator"] = "auto"
    if not attune.by_hand or attune.world_size > 1:
        options["plugins"] = [_Environment()]
    return options


def checkpoint() -> str | None:
    """Returns the `ckpt_path` of `Trainer.fit`: the file to resume from, or None.

    Raises CheckpointError if a file of the checkpoint has changed since it was saved.
    """
    return str(attune.checkpoint / _FILE) if attune.checkpoint else None


class ReportCallback(_pytorch.callbacks.Checkpoint):
    """Reports the values that the module has logged, at the end of each epoch, with a checkpoint if one is due.

    `metrics` names the values that are reported; by default all. `log` names values that the module logs with
    `on_step=True`. The callback logs them every `log_every_n_steps` batches of the Trainer. With `on="validation_end"`
    each validation is a step of the trial, instead of each epoch. Each batch also tells the executor that the rank is alive.

    Raises ValueError if `on` has another value. `Trainer.fit` raises the exceptions of `attune.report`: TrialEnded when
    the trial must end, ValueError if a value is not a number, LostPeer, CheckpointError and DiskFull.
    """

    def __init__(self, metrics: typing.Collection[str] | None = None, log: typing.Iterable[str] = (),
                 on: str = "train_epoch_end") -> None:
        if on not in ("train_epoch_end", "validation_end"):
            raise ValueError(f'on is {on!r} and must be "train_epoch_end" or "validation_end"')
        self._metrics, self._log, self._on = metrics, tuple(log), on
        self._batches = 0  # since the last report

    def on_train_epoch_end(self, trainer: typing.Any, pl_module: typing.Any) -> None:
        if self._on == "train_epoch_end":
            self._report(trainer, trainer.current_epoch + 1)

    def on_validation_end(self, trainer: typing.Any, pl_module: typing.Any) -> None:
        if self._on == "validation_end" and trainer.state.fn == "fit" and not trainer.sanity_checking:
            self._report(trainer, None)

    def on_train_batch_end(self, trainer: typing.Any, pl_module: typing.Any, outputs: typing.Any, batch: typing.Any,
                           batch_idx: int) -> None:
        attune.progress()
        self._batches += 1
        if not self._log or (batch_idx + 1) % trainer.log_every_n_steps:
            return
        batches = trainer.num_training_batches  # in a step of the trial
        if self._on == "validation_end":
            batches = (trainer.val_check_batch or math.inf) * (trainer.check_val_every_n_epoch or 1)
        if math.isinf(batches):
            return  # the length of the data is unknown
        logged = trainer.logged_metrics  # Lightning uses NAME_step if the module also logs the mean of the epoch
        values = {name: logged.get(f"{name}_step", logged.get(name)) for name in self._log}
        attune.log({name: value for name, value in values.items() if value is not None},
                   attune.step + min(self._batches / batches, 1))

    def on_validation_batch_end(self, trainer: typing.Any, pl_module: typing.Any, outputs: typing.Any,
                                batch: typing.Any, batch_idx: int, dataloader_idx: int = 0) -> None:
        attune.progress()

    def _report(self, trainer: typing.Any, step: int | None) -> None:
        def save(folder: pathlib.Path) -> None:
            trainer.save_checkpoint(folder / _FILE)

        values = {name: value for name, value in trainer.callback_metrics.items()
                  if self._metrics is None or name in self._metrics}
        self._batches = 0
        # Every rank saves, because save_checkpoint() waits for all ranks. Only rank 0 writes.
        attune.report(values, step, save, every_rank=True)
