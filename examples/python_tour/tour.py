"""Shows functions of the package `attune` that the other examples do not use, each in a few lines.

    pip install pandas tensorboardX
    python3 tour.py          # tunes train() on a server that it starts
    python3 tour.py --alone  # calls train() by hand
"""

import pathlib
import sys
import tempfile

import attune
import attune.tensorboard
from attune.client import Error, LocalServer

SWEEP = {
    "name": "tour",
    "metric": {"name": "loss", "mode": "min"},
    "parameters": {"lr": {"values": [0.1, 0.5]}},
    "searcher": {"name": "grid"},
    "scheduler": {"name": "asha", "min": 1, "max": 2, "reduction_factor": 2},
    "resources": {"workers": 2, "cpus_per_worker": 1},
    "stop": {"max_trials": 2},
}
ASKED = {  # no command: the program that asks for trials also trains them
    "name": "asked",
    "metric": {"name": "loss", "mode": "min"},
    "parameters": {"lr": {"values": [0.1, 0.2, 9]}},
    "searcher": {"name": "grid"},
    "scheduler": {"name": "asha", "min": 1, "max": 2, "reduction_factor": 2},
    "failure": {"max_restarts": 0},
    "stop": {"max_trials": 3},
}


def train(config):
    """Runs on each rank of a trial."""
    if attune.by_hand:
        print("started by hand: no scheduler decides, and nothing is saved")
    else:
        print(f"sweep {attune.sweep}, trial {attune.trial}, attempt {attune.attempt}: {attune.config}")
        print(f"checkpoints are in {attune.checkpoint_dir}, the last report was at time {attune.time}")
    print(f"rank {attune.local_rank} of {attune.local_world_size} on this host has {attune.cpus} cores, and trains on "
          f"{attune.device} of {attune.devices}")
    attune.heartbeat(silence=60)  # the first epoch may need a minute more than failure.stall_timeout
    for step in range(attune.step + 1, (attune.max_step or 2) + 1):
        loss = config["lr"] ** step
        attune.log({"batch_loss": loss}, step=step - 0.5)
        try:
            with tempfile.TemporaryDirectory() as folder:
                checkpoint = attune.Checkpoint.from_directory(folder)
                pathlib.Path(checkpoint.path, "loss.txt").write_text(str(loss))
                attune.report({"loss": loss}, step, checkpoint)
        except attune.DiskFull:
            print("the trial continues on another host, or when the disk has space")
            raise
        except attune.CheckpointError:
            print("the checkpoint cannot be written")
            raise
        except attune.LostPeer:
            print("another rank has ended; its log says why")
            raise
        except attune.TrialEnded as ended:
            print(f"the trial ends after step {step}: {ended.action}")
            raise


def show_results(sweep, folder):
    """Prints and exports the reports of an ended sweep."""
    print(sweep.id, sweep.name, sweep.metric, sweep.get()["trials"])
    print(sweep.trials().to_pandas()[["number", "state", "config/lr"]])
    curves = sweep.curves("batch_loss")
    print(curves.metric, [curve["logged_values"] for curve in curves])
    best = sweep.best()
    print([point["metrics"] for point in sweep.logged(best["trial"])])
    trial = sweep.trial(best["trial"])
    print([host["record"] for host in trial.environment()["executors"]])  # with which versions it ran
    checkpoint = trial.checkpoint(best=True)
    print(f"{checkpoint.name}: attempt {checkpoint.attempt} saved it at step {checkpoint.step}, "
          f"{checkpoint.bytes} bytes, {checkpoint.digest}")
    attune.tensorboard.write(sweep, folder)


def ask_and_tell(server):
    """Trains the trials of a sweep in this program."""
    sweep = server.create(ASKED)
    print("added trial", sweep.enqueue({"lr": 0.1})["number"])
    if trial := sweep.ask():
        trial.release()  # returns the trial: the loop below or another program gets it
    while trial := sweep.ask():
        print(f"trial {trial.number}, attempt {trial.attempt}, lease {trial.epoch}, seed {trial.seed}: has done step "
              f"{trial.step}, and the next decision is at step {trial.milestone}")
        if trial.config["lr"] > 1:
            trial.fail("the learning rate is too large")
            continue
        for step in range(trial.step + 1, trial.max_step + 1):
            trial.progress()  # renews the lease
            if not trial.report(step, {"loss": trial.config["lr"] ** step}):
                print(f"{trial.verdict}: {trial.reason}")
                break
        trial.complete()


def control_sweeps(server):
    """Pauses, resumes and ends sweeps."""
    sweep = server.create(ASKED)
    print(sweep.pause(), sweep.resume(), sweep.kill())
    sweep.annotate(note="stopped by hand", add_tags=["baseline"])
    sweep.delete(delay=600)  # in ten minutes
    sweep.undelete()
    sweep.delete()
    print(server.create(ASKED).stop())
    print(server.sweeps())


def main():
    folder = pathlib.Path(tempfile.mkdtemp())
    server = LocalServer(folder / "data", options=["--port", "0", "--rpc-port", "0"])
    print(server.page, server.login_link())
    sweep = server.create(SWEEP, train=train)
    sweep.wait()
    show_results(server.sweep("s1"), folder / "runs")
    ask_and_tell(server)
    control_sweeps(server)
    try:
        server.create({**ASKED, "metric": {"name": "loss", "mode": "least"}})
    except Error as error:
        print(error.status, [fault["pointer"] for fault in error.errors])
    server.stop()


if __name__ == "__main__":
    if "--alone" in sys.argv:
        train(attune.init({"lr": 0.1}))
    else:
        main()
