#!/bin/bash
# A sweep as a PBS job array, one `sigmapca train` a task:   qsub examples/pbs/sweep.sh
# The same qsub again repeats nothing: finished runs are skipped, interrupted ones go on.
#PBS -N sigmapca
#PBS -J 0-5
#PBS -l select=1:ncpus=2:mem=4gb
#PBS -l walltime=04:00:00
#PBS -r y
#PBS -j oe
cd "${PBS_O_WORKDIR:?start this with qsub}" || exit 2
scales=(1 2 4 8 16 32)
a=${scales[$PBS_ARRAY_INDEX]}
read -ra more <<<"${SIGMAPCA_ARGUMENTS:-}"
# PBS sends SIGTERM to the whole job at its limit, then SIGKILL: the run saves and ends with 75.
exec sigmapca train model=nlpca a="$a" "${more[@]}" --run-dir "outputs/pbs-sweep/a-$a" --if-exists resume
