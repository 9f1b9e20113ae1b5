#!/bin/bash
# A Slurm cluster on this machine, for tests: real daemons, each node a network, mount and UTS
# namespace of its own with 16 made-up CPUs and two made-up GPUs, in the partitions `main` (default)
# and `short` (of one node, ten minutes at most). As root, in namespaces that go with this process:
#
#   unshare --net --mount --pid --fork --kill-child --mount-proc slurm_cluster.sh DIR NODES
#
# DIR is absolute, open to all (munged wants it so), and gets slurm.conf, and a `node-N.pid` for each node's slurmd. This process's
# network namespace is the login node, at 10.78.0.254; node N is at 10.78.0.N.
set -eu
dir=$1 nodes=$2 host=$(hostname -s)
export SLURM_CONF=$dir/slurm.conf
mkdir -p "$dir/state"
(umask 077 && head -c 128 /dev/urandom >"$dir/munge.key")
echo CgroupPlugin=cgroup/v1 >"$dir/cgroup.conf"  # or slurmd looks for one that a container hides
printf 'Name=gpu File=%s\n' /dev/null /dev/zero >"$dir/gres.conf"
cat >"$dir/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(10.78.0.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$dir/munge.sock
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
ReturnToService=2
SlurmdTimeout=6
KillWait=3
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
GresTypes=gpu
NodeName=n[1-$nodes] NodeAddr=10.78.0.[1-$nodes] CPUs=16 RealMemory=4000 Gres=gpu:2
PartitionName=main Nodes=ALL Default=YES State=UP
PartitionName=short Nodes=n1 MaxTime=10 State=UP
PartitionName=urgent Nodes=ALL PriorityTier=10 State=UP
END

{
  echo '127.0.0.1 localhost'
  echo "10.78.0.254 $host"
  for i in $(seq "$nodes"); do echo "10.78.0.$i n$i"; done
} >"$dir/hosts"
mount --bind "$dir/hosts" /etc/hosts
ip link set lo up
ip link add cluster type bridge
ip addr add 10.78.0.254/24 dev cluster
ip link set cluster up

munged -F --key-file="$dir/munge.key" --socket="$dir/munge.sock" --pid-file="$dir/munged.pid" \
  --log-file="$dir/munged.log" --seed-file="$dir/munged.seed" >"$dir/munged.out" 2>&1 &
until [ -S "$dir/munge.sock" ]; do
  kill -0 $! || { cat "$dir/munged.out" >&2; exit 1; }
  sleep .02
done
# As systemd would, another one follows one that was killed.
while :; do slurmctld -D >>"$dir/slurmctld.out" 2>&1 || sleep .5; done &

for i in $(seq "$nodes"); do
  mkdir -p "$dir/spool.n$i"
  mkfifo "$dir/wire-$i"
  # The node waits for its wire; the namespaces are there once it has opened the pipe.
  unshare --net --mount --uts sh -c '
    hostname "n$0" && echo up >"$1/wire-$0" && read -r _ <"$1/wire-$0" &&
    ip link set lo up && ip addr add "10.78.0.$0/24" dev eth0 && ip link set eth0 up &&
    exec slurmd -D -N "n$0"' "$i" "$dir" >"$dir/slurmd.n$i.out" 2>&1 &
  node=$!
  read -r _ <"$dir/wire-$i"
  ip link add "node$i" type veth peer name eth0 netns "$node"
  ip link set "node$i" master cluster up
  echo up >"$dir/wire-$i"
  echo "$node" >"$dir/node-$i.pid"
done
wait
