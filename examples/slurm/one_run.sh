#!/bin/bash
# One run of a solver over several tasks, on one node or many: every task reads a share of the rows, the first writes.
#   sbatch examples/slurm/one_run.sh
# A solver keeps no checkpoint: a job that meets its time limit begins again when it is queued again.
#SBATCH --job-name=sigmapca-one
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=04:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=slurm-%j.log

# That MASTER_ADDR is set is what makes one run of the tasks; without it every task would be a run of its own.
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR

read -ra more <<<"${SIGMAPCA_ARGUMENTS:-}"
srun sigmapca train solver=newton a=4 "${more[@]}" --run-dir outputs/slurm-one-run --if-exists resume
