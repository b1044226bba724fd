#!/bin/bash
# A sweep without Hydra's multirun: one SLURM array, one `sigmapca train` a task.
#   sbatch examples/slurm/sweep.sh
# A task that meets its time limit, or is preempted, saves, is queued again and goes on in the same folder. The same
# sbatch again repeats nothing: finished runs are skipped, interrupted ones continue.
#SBATCH --job-name=sigmapca
#SBATCH --array=0-5
#SBATCH --time=04:00:00
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=slurm-%A_%a.log
#SBATCH --signal=B:USR2@60

scales=(1 2 4 8 16 32)
a=${scales[$SLURM_ARRAY_TASK_ID]}
# Further overrides for all tasks: SIGMAPCA_ARGUMENTS="data=planted k=12" sbatch examples/slurm/sweep.sh
read -ra more <<<"${SIGMAPCA_ARGUMENTS:-}"

# In the background: bash looks at signals only between two commands, and while it waits.
sigmapca train model=nlpca a="$a" "${more[@]}" --run-dir "outputs/slurm-sweep/a-$a" --if-exists resume &
run=$!
limit=
trap 'limit=yes; kill -USR2 $run' USR2   # the time limit is near
trap 'kill -TERM $run' TERM              # preempted, requeued or cancelled
status=255
while kill -0 $run 2>/dev/null; do
    wait $run                            # a signal ends this wait before the run has ended
    status=$?
done

# 75: stopped, and resumable. After a SIGTERM it is SLURM that decides whether the job comes back.
if [ "$status" = 75 ] && [ -n "$limit" ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
