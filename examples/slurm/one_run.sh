#!/bin/bash
# One run over several tasks, on one node or many: every task holds a share of each batch, the first one writes.
#   sbatch examples/slurm/one_run.sh
# A job that meets its time limit saves, is queued again and goes on in the same folder.
#SBATCH --job-name=sigmapca-one
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=slurm-%j.log
#SBATCH --signal=USR2@120

# That MASTER_ADDR is set is what makes one run of the tasks; without it every task would be a run of its own.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR

read -ra more <<<"${SIGMAPCA_ARGUMENTS:-}"
srun sigmapca train model=nlpca batch_size=8192 "${more[@]}" --run-dir outputs/slurm-one-run --if-exists resume
status=$?

# 75: stopped, and resumable. After a preemption it is SLURM that brings the job back.
if [ "$status" = 75 ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
