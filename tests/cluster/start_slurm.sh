#!/usr/bin/env bash
# A SLURM of one node, for tests: start_slurm.sh FOLDER starts it there, start_slurm.sh --stop FOLDER stops it.
# Needs root and Debian's packages slurmctld, slurmd, slurm-client and munge. Afterwards: export SLURM_CONF=FOLDER/slurm.conf
set -euo pipefail

stop() {
    local name
    for name in slurmd slurmctld munged; do
        if [ -s "$1/$name.pid" ]; then kill "$(cat "$1/$name.pid")" 2>/dev/null || true; fi
    done
}

if [ "$1" = --stop ]; then stop "$2"; exit 0; fi

folder=$1
host=$(hostname -s)
mkdir -p "$folder/state" "$folder/spool"
# munged wants its folders for itself alone, and runs as its own user.
munge=$(mktemp -d /tmp/munge.XXXXXX)
dd if=/dev/urandom of="$munge/key" bs=1024 count=1 status=none
chmod 600 "$munge/key"
chmod 755 "$munge"
chown -R munge: "$munge"
/usr/sbin/runuser -u munge -- munged --force --key-file="$munge/key" --socket="$munge/socket" \
    --pid-file="$munge/pid" --log-file="$munge/log" --seed-file="$munge/seed"
cp "$munge/pid" "$folder/munged.pid"
munge -n -S "$munge/socket" | unmunge -S "$munge/socket" >/dev/null

memory=$(( $(awk '/MemTotal/ {print $2}' /proc/meminfo) / 1024 * 8 / 10 ))
cat >"$folder/slurm.conf" <<END
ClusterName=local
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${SLURMCTLD_PORT:-16817}
SlurmdPort=${SLURMD_PORT:-16818}
AuthType=auth/munge
AuthInfo=socket=$munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=2,sched_interval=2
ReturnToService=2
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
KillWait=5
JobRequeue=1
MaxArraySize=6
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(env -u OMP_NUM_THREADS nproc) RealMemory=$memory State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=main Nodes=$host Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=urgent Nodes=$host MaxTime=INFINITE State=UP PriorityTier=10
END
export SLURM_CONF=$folder/slurm.conf
slurmctld -f "$SLURM_CONF" -c
slurmd -f "$SLURM_CONF"
for _ in $(seq 100); do
    if [ "$(sinfo --noheader --format=%T 2>/dev/null | sort -u)" = idle ]; then exit 0; fi
    sleep 0.2
done
echo "the node did not become idle:" >&2
sinfo >&2 || true
tail -n 20 "$folder/slurmctld.log" "$folder/slurmd.log" >&2
exit 1
